//! Rewrites a script with a placeholder, and masks the value in a stream of output.

#![allow(clippy::print_stdout, reason = "an example prints its results")]

use karyi_core::error::ToolError;
use karyi_core::secret::{SecretName, SecretValue};
use karyi_vault::redact::{Redacted, Redactor};
use karyi_vault::session::Secrets;
use karyi_vault::shell::substitute_script;

fn main() -> Result<(), ToolError> {
    let secrets = Secrets::default();
    if let Some(name) = SecretName::parse("TOKEN") {
        secrets.insert(name, SecretValue::new("gY7-kd02-Qm4x-1fZp".to_owned()))?;
    }

    let script = substitute_script(
        "curl -H \"Authorization: Bearer $KARYI{TOKEN}\" example.com",
        &secrets,
    )?;
    println!("script: {}", script.text.as_str());
    for binding in &script.bindings {
        println!("variable with the value: {}", binding.variable());
    }

    let redactor = Redactor::new(&secrets);
    let (mut stream, mut shown) = (redactor.stream(), Redacted::default());
    for piece in [
        "plain gY7-kd0",
        "2-Qm4x-1fZp, base64 Z1k3LWtkMDIt",
        "UW00eC0xZlpw\n",
    ] {
        stream.push(piece, &mut shown);
    }
    stream.finish(&mut shown);
    print!("output: {shown}");
    Ok(())
}
