//! Starting the server: what is wrong is said at once, with what to type next.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use descartes_testkit::World;

use crate::common::serve;
use descartes_testkit::http::Ask;

#[test]
fn a_port_in_use_is_named_with_another() {
    let world = World::in_memory();
    let served = serve(&world, &[]);
    let run = world.run(world.descartes(["serve", "--listen", &served.address]));
    run.assert_code(1);
    assert!(
        run.stderr()
            .contains(&format!("cannot listen on {}", served.address)),
        "{run}"
    );
    assert!(run.stderr().contains("--listen 127.0.0.1:"), "{run}");
    assert_eq!(run.stdout(), "");
}

#[test]
fn other_machines_need_tls_or_an_explicit_word() {
    let world = World::in_memory();
    let run = world.run(world.descartes(["serve", "--listen", "0.0.0.0:0"]));
    run.assert_code(64);
    assert!(
        run.stderr().contains("--tls-cert") && run.stderr().contains("--behind-proxy"),
        "{run}"
    );
    assert!(!world.state().join("web-tokens.json").exists());
    let served = serve(&world, &["--behind-proxy", "--host", "loops.example"]);
    let by_proxy = Ask::post("/sign-in", &format!("token={}", served.full))
        .with("Host", "loops.example")
        .with("Origin", "https://loops.example");
    let signed = served.ask(&by_proxy).assert_status(303);
    assert!(signed.header("set-cookie").unwrap().contains("; Secure"));
    let printed = format!("https://loops.example{}", served.entrance);
    assert!(served.line.contains(&printed), "{}", served.line);
}

#[test]
fn certificates_that_cannot_be_used_are_named() {
    let world = World::in_memory();
    let serve = |cert: &str, key: &str| {
        let flags = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tls-cert",
            cert,
            "--tls-key",
            key,
        ];
        world.run(world.descartes(flags))
    };
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    world.write("cert.pem", made.cert.pem());
    world.write("key.pem", made.signing_key.serialize_pem());
    world.write("empty.pem", "");
    let locked =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    world.write("locked.pem", locked);
    for (cert, key, named) in [
        ("missing.pem", "key.pem", "certificate"),
        ("empty.pem", "key.pem", "certificate"),
        ("cert.pem", "missing.pem", "key"),
        ("cert.pem", "cert.pem", "key"),
        ("cert.pem", "locked.pem", "key"),
    ] {
        let run = serve(cert, key);
        run.assert_code(65);
        assert!(
            run.stderr().contains(&format!("cannot use the {named}")),
            "{run}"
        );
        assert!(run.stderr().contains("PEM"), "{run}");
    }
    assert!(serve("cert.pem", "locked.pem").stderr().contains("openssl"));
    let lonely = world.run(world.descartes(["serve", "--tls-cert", "cert.pem"]));
    lonely.assert_code(64);
}

#[test]
fn an_agent_cannot_serve_its_own_loop() {
    let world = World::in_memory();
    let descartes = descartes_testkit::world::bins::descartes()
        .display()
        .to_string();
    let script = format!("sh {descartes} serve --listen 127.0.0.1:0 2> told; echo $? > code");
    let id = crate::common::start(&world, &script, &["-m", "1"]);
    crate::common::until_status(&world, &id, "ended");
    assert_eq!(world.read("code").trim(), "65");
    assert!(world.read("told").contains("descartes serve"));
}

/// Asks over TLS, trusting this certificate alone.
fn ask_tls(address: &str, certificate: &rcgen::Certificate, request: &str) -> String {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, stream);
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = Vec::new();
    // Some servers close without a word of goodbye.
    let _ = stream.read_to_end(&mut reply);
    String::from_utf8_lossy(&reply).into_owned()
}

#[test]
fn tls_is_spoken_where_a_certificate_is_given() {
    let world = World::in_memory();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    world.write("cert.pem", made.cert.pem());
    world.write("key.pem", made.signing_key.serialize_pem());
    let served = serve(&world, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    assert!(
        served.line.contains("https://127.0.0.1:"),
        "{}",
        served.line
    );
    let port = served.address.split(':').nth(1).unwrap();
    let get = |path: &str, more: &str| {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n{more}Connection: close\r\n\r\n"
        );
        ask_tls(&served.address, &made.cert, &head)
    };
    let entered = get(&served.entrance, "");
    assert!(entered.starts_with("HTTP/1.1 303"), "{entered}");
    assert!(entered.contains("; Secure"), "{entered}");
    let bearer = format!("Authorization: Bearer {}\r\n", served.full);
    assert!(get("/api/v1/loops", &bearer).starts_with("HTTP/1.1 200"));
    assert!(get("/api/v1/loops", "").starts_with("HTTP/1.1 401"));
    let plain = format!("{bearer}Origin: http://localhost:{port}\r\n");
    assert!(get("/api/v1/loops", &plain).starts_with("HTTP/1.1 403"));
}

#[test]
fn it_ends_when_asked_to_and_leaves_its_port() {
    let world = World::in_memory();
    let served = serve(&world, &[]);
    let mut stream = served.open("/api/v1/events");
    let pid = nix::unistd::Pid::from_raw(i32::try_from(served.pid()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(stream.event(), None);
    assert_eq!(served.wait(), Some(0));
}

#[test]
fn what_cannot_be_served_is_said_with_what_can() {
    let world = World::in_memory();
    for (flags, told) in [
        (&["--listen", "nowhere"][..], "127.0.0.1:7400"),
        (&["--host", ""], "loops.example.org"),
        (&["--host", "bad host/"], "loops.example.org"),
        (&["--allow-start", "--project", "/nope"], "no such folder"),
    ] {
        let run = world.run(world.descartes([&["serve"], flags].concat()));
        run.assert_code(64);
        assert!(run.stderr().contains(told), "{run}");
    }
    for listen in ["localhost:0", "0"] {
        let served = serve(&world, &["--listen", listen]);
        assert!(served.address.starts_with("127.0.0.1:"), "{}", served.line);
    }
}
