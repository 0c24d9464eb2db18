//! Limits of the HTTP client and of models.

use std::time::Duration;

/// Time to connect to a server, encryption included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Time from a request to the head of a model's answer. A server on this machine may read the prompt first.
pub const MODEL_HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest silence of a model on another machine: silence is normal while it thinks.
pub const MODEL_IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// Longest time in which a model on another machine sends signs of life only.
pub const MODEL_PROGRESS_TIMEOUT: Duration = Duration::from_secs(900);
/// Time for the whole answer to a question of a tool.
pub const MODEL_QUESTION_TIMEOUT: Duration = Duration::from_secs(180);
/// Time for a server to tell facts about a model.
pub const MODEL_FACTS_TIMEOUT: Duration = Duration::from_secs(10);
/// Most attempts of one request to a model.
pub const MODEL_ATTEMPTS: u32 = 4;
/// Pause before the second attempt; it doubles.
pub const MODEL_RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause between two attempts that the server did not ask for.
pub const MAX_MODEL_RETRY_PAUSE: Duration = Duration::from_secs(30);
/// Longest pause that is made without asking the user.
pub const MAX_MODEL_WAIT: Duration = Duration::from_secs(60);
/// Largest event of a model's answer, in bytes.
pub const MAX_MODEL_EVENT_BYTES: usize = 16 << 20;
/// Bytes that are read of the account of an error.
pub const MODEL_ERROR_BYTES: usize = 64 << 10;
/// Characters of a server's message that are repeated.
pub const MODEL_MESSAGE_CHARS: usize = 400;
/// Tokens of an answer where the provider needs a number and none is known.
pub const MODEL_MAX_OUTPUT: u64 = 8192;
/// Time from the reason of an answer's end to its last counts; some servers leave the connection open.
pub const MODEL_TAIL_TIMEOUT: Duration = Duration::from_secs(2);
/// Largest context that Ollama is asked for without a setting: it reserves memory for all of it.
pub const OLLAMA_CONTEXT: u64 = 32 << 10;
/// Time in which a server of models on this machine must say that it is there.
pub const LOCAL_SERVER_TIMEOUT: Duration = Duration::from_millis(300);
/// Time in which a server on this machine that was just started may begin to listen.
pub const LOCAL_START_TIME: Duration = Duration::from_secs(2);
/// Pause before the next attempt to reach a server that was just started.
pub const LOCAL_START_PAUSE: Duration = Duration::from_millis(50);
/// Longest URL of a page, in bytes; servers and other clients take no longer ones.
pub const MAX_URL_BYTES: usize = 8 << 10;
/// Most redirects that are followed for one request.
pub const MAX_REDIRECTS: usize = 3;
/// Most links of a page that get a number: a reader follows few.
pub const MAX_PAGE_LINKS: usize = 50;
/// Longest title of a page, in characters.
pub const MAX_PAGE_TITLE_CHARS: usize = 300;
/// Time limit of a `url_fetch`, unless the call or the settings say otherwise.
pub const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a body that a `url_fetch` reads, unless the call or the settings say otherwise.
pub const FETCH_BYTES: u64 = 512 << 10;
/// Most bytes of a body that a result can be made of.
pub const MAX_FETCH_BYTES: u64 = 16 << 20;
/// Most bytes of a download, which is held in memory until it is whole.
pub const DOWNLOAD_BYTES: u64 = 100 << 20;
/// Longest name of a file that file systems take, in bytes.
pub const MAX_FILE_NAME_BYTES: usize = 255;
/// Most headers of a request: servers refuse more.
pub const MAX_FETCH_HEADERS: usize = 50;
/// Time limit of a `web_search`, unless the settings say otherwise.
pub const SEARCH_TIMEOUT: Duration = Duration::from_secs(20);
/// Results of a `web_search`, unless the call or the settings say otherwise.
pub const SEARCH_RESULTS: usize = 5;
/// Most results of a `web_search`.
pub const MAX_SEARCH_RESULTS: usize = 20;
/// Bytes that are read of a page of results.
pub const SEARCH_PAGE_BYTES: usize = 2 << 20;
