//! What shells show of scripts with placeholders: no names that karyi made up.

use super::home::Home;

const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";

fn run(shell: &str, script: &str) -> String {
    let home = Home::new();
    let pairs = format!("T\0{VALUE}\0");
    let run = ["run", "--format", "xml", "--no-rc", "--shell", shell];
    let given = ["--vars-fd", "3", "-c", script];
    let ran = home.karyi_with_fd(&[&run[..], &given].concat(), pairs.as_bytes());
    ran.hides(VALUE).hides("__karyi_").stdout
}

#[test]
fn jobs_and_errors_show_placeholders() {
    for shell in ["bash", "zsh"] {
        if which(shell).is_none() {
            crate::harness::skip(&format!("there is no {shell}"));
            continue;
        }
        let shown = run(
            shell,
            "<tools><command><![CDATA[sleep 50 \"$KARYI{T}\" & sleep 50 x'$KARYI{T}' & jobs]]></command></tools>\n\
             <tools><command><![CDATA[kill %1 %2; wait; jobs]]></command></tools>",
        );
        // Some shells write the quotes anew.
        let quotes = |text: &str| text.replace(['"', '\''], "").replace("&quot;", "");
        assert!(
            quotes(&shown).contains("sleep 50 $$KARYI{T}"),
            "{shell}: {shown}"
        );
        assert!(
            quotes(&shown).contains("sleep 50 x$$KARYI{T}"),
            "{shell}: {shown}"
        );
    }
}

#[test]
fn a_trace_and_a_list_of_names_show_placeholders() {
    let shown = run(
        "bash",
        "<tools><command>set -x</command></tools>\n\
         <tools><command><![CDATA[: $KARYI{T}; set +x; echo \"${!__k@}\"; n=; cat <\"$KARYI{T}\"$n$n]]></command></tools>",
    );
    assert!(shown.contains("$$KARYI{T}"), "{shown}");
    assert!(shown.contains(": $KARYI{T}"), "{shown}");
}

fn which(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|dir| dir.join(program));
    places.find(|place| place.is_file())
}
