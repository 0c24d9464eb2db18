//! `karyi site import`, and the tools of sites in the lists of tools.

use serde_json::json;

use super::{Server, village};
use crate::harness::{Karyi, program};

fn import(dir: &std::path::Path, site: &std::path::Path) -> (Option<i32>, String) {
    let output = std::process::Command::new(program())
        .args(["site", "import"])
        .arg(site)
        .arg("--db")
        .arg(dir.join("site.db"))
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap(),
    )
}

#[test]
fn a_site_is_imported_when_it_changed() {
    let dir = tempfile::tempdir().unwrap();
    let told = |what: &str| {
        (
            Some(0),
            format!("yantian/yantian-main {what}: 4 profiles, 48 contents, 1 prompts\n"),
        )
    };
    assert_eq!(import(dir.path(), &village()), told("imported"));
    assert_eq!(import(dir.path(), &village()), told("unchanged"));
}

#[test]
fn a_site_that_does_not_fit_is_refused_with_its_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("site.yaml"),
        "tenant_id: t\nsite_id: s\nname: S\n",
    )
    .unwrap();
    std::fs::write(dir.path().join("a.yaml"), "contents:\n- {id: a, kind: b}\n").unwrap();
    let (code, told) = import(dir.path(), dir.path());
    assert_eq!(code, Some(2));
    assert!(told.contains("a.yaml") && told.contains("kind"), "{told}");
}

#[test]
fn two_directories_of_one_site_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let path = dir.path().join(name);
        std::fs::create_dir(&path).unwrap();
        let text = "tenant_id: t\nsite_id: s\nname: S\n";
        std::fs::write(path.join("site.yaml"), text).unwrap();
    }
    let (code, told) = import(dir.path(), dir.path());
    let root = dir.path().display();
    let expected = format!(
        "karyi: {root}/b: it is the site t/s, and so is {root}/a; expected one directory for each site\n"
    );
    assert_eq!((code, told), (Some(2), expected));
}

#[test]
fn two_tenants_side_by_side_see_only_themselves() {
    let sites = tempfile::tempdir().unwrap();
    for tenant in ["a", "b"] {
        let path = sites.path().join(tenant);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(
            path.join("site.yaml"),
            format!("tenant_id: {tenant}\nsite_id: s\nname: {tenant}\n"),
        )
        .unwrap();
        let more = json!({
            "contents": [{"id": "same", "content_type": "knowledge", "title": "古井", "body": format!("of {tenant}")}],
            "profiles": [{"npc_id": "n", "name": tenant}],
            "points": [{"id": "p", "name": tenant}],
        });
        std::fs::write(path.join("more.json"), more.to_string()).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(import(dir.path(), sites.path()).0, Some(0));
    let server = Server::start_in(dir, &[]);
    for tenant in ["a", "b"] {
        let headers = [("X-Tenant-ID", tenant), ("X-Site-ID", "s")];
        let ask = |tool: &str, input: serde_json::Value| {
            server.answer(tool, &input, &headers).json()["output"].clone()
        };
        let found = ask("search_content", json!({"query": "古井"}));
        assert_eq!(
            (&found["total"], &found["items"][0]["body"]),
            (&json!(1), &json!(format!("of {tenant}")))
        );
        assert_eq!(
            ask("get_npc_profile", json!({"npc_id": "n"}))["name"],
            tenant
        );
        assert_eq!(ask("get_site_map", json!({}))["pois"][0]["name"], tenant);
        assert_eq!(
            ask("get_prompt_active", json!({"npc_id": "n"}))["metadata"]["name"],
            tenant
        );
    }
    let nobody = server
        .answer(
            "get_site_map",
            &json!({}),
            &[("X-Tenant-ID", "a"), ("X-Site-ID", "t")],
        )
        .json();
    assert_eq!(nobody["error"], "Site not found: t");
    let nobody = server
        .answer(
            "create_draft_content",
            &json!({"content_type": "faq", "title": "a", "body": "b"}),
            &[("X-Tenant-ID", "c")],
        )
        .json();
    assert_eq!(nobody["error_code"], "NOT_FOUND");
}

#[test]
fn scripts_cannot_call_the_tools_of_a_site() {
    Karyi::new()
        .stdin("<tools><get_site_map/></tools>")
        .run()
        .exit(2);
    let list = Karyi::with_args(&["tools", "--family", "site"])
        .run()
        .exit(0)
        .stdout();
    assert_eq!(list.lines().count(), 6);
    let core = Karyi::with_args(&["tools"]).run().exit(0).stdout();
    assert!(!core.contains("get_site_map"));
    let page = Karyi::with_args(&["tools", "search_content"])
        .run()
        .exit(0)
        .stdout();
    assert!(page.contains("limit"));
}

#[test]
fn every_example_decodes_and_ends_as_it_says() {
    let server = Server::start(&[]);
    let registry =
        karyi::tools::all().only(|entry| entry.spec.family == karyi::tool::spec::Family::Site);
    for entry in registry.entries() {
        for example in entry.spec.examples {
            let input = crate::registry::site_input(example.xml);
            let answer = server.call(entry.spec.name, &input);
            let is_ok = example.status == karyi::outcome::Status::Ok;
            assert_eq!(answer["success"], is_ok, "{}: {answer}", example.title);
            if let Some(code) = example.code {
                assert_eq!(
                    answer["error_code"],
                    code.to_uppercase(),
                    "{}",
                    example.title
                );
            }
        }
    }
}
