#!/bin/sh
# Hands a job over and works it off, for cron or a timer:
#     0 2 * * *  cd /srv/project && PATH=$HOME/.cargo/bin:$PATH /srv/karyi/examples/nightly.sh "Run the tests."
# The Teller's answers are the output, which cron mails. The Worker's commands run without a question. Each project has
# a state of its own, named after the path of its directory.
state=${XDG_STATE_HOME:-$HOME/.local/state}/karyi/supervise/$(pwd -P | tr / -)
karyi tell --state-dir "$state" "$1" && exec karyi supervise --state-dir "$state" --worker full --once
