//! The least a server can do: axum, one route, a word.

use axum::Router;
use axum::routing::get;

/// Serves until it is killed; prints its port.
pub(crate) fn serve() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap().port());
        let app = Router::new().route("/", get(|| async { "hello" }));
        axum::serve(listener, app).await.unwrap();
    });
}
