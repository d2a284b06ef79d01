//! Webhooks by https: nothing but descartes is needed, and nobody is told who cannot prove his name.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use descartes_testkit::{World, eventually};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::common::{loop_dir, start_command};

const SOON: Duration = descartes_testkit::PATIENCE;

/// A certificate authority of this test's own.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    /// Its certificate, for `SSL_CERT_FILE`.
    fn file(&self, world: &World) -> PathBuf {
        let file = world.root().join("ca.pem");
        std::fs::write(&file, self.0.pem()).unwrap();
        file
    }

    fn issue(&self, params: &CertificateParams) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key);
        Arc::new(config.unwrap())
    }
}

fn named(name: &str) -> CertificateParams {
    CertificateParams::new([name.to_owned()]).unwrap()
}

/// A server that gives every request away and answers it. Connections that come to nothing are dropped.
fn server(config: Arc<ServerConfig>, answer: String) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heard, rx) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            let (mut text, mut piece) = (String::new(), [0; 4096]);
            while !text.ends_with("}\n") {
                match stream.read(&mut piece) {
                    Ok(read) if read > 0 => text.push_str(&String::from_utf8_lossy(&piece[..read])),
                    _ => break,
                }
            }
            if !text.is_empty() {
                drop(stream.write_all(answer.as_bytes()));
                drop(heard.send(text));
            }
        }
    });
    (port, rx)
}

fn answer(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")
}

/// Runs a loop to its end whose hooks are these.
fn run(world: &World, hooks: &[String], variables: &[(&str, &str)]) {
    world.configure(format!("on_event = {hooks:?}\n"));
    let mut command = start_command(world, "promise", &[]);
    command.envs(variables.iter().copied());
    world.run(command).assert_code(0);
}

/// The log of what could not be told, once it has so many lines.
fn failures(world: &World, lines: usize) -> String {
    let log = loop_dir(world).join("notify.log");
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    eventually("the log", SOON, || read().lines().count() >= lines);
    read()
}

#[test]
fn an_https_webhook_is_told_without_curl_by_a_server_of_a_private_ca() {
    let world = World::in_memory();
    world.program(
        "curl",
        "#!/bin/sh\n: > \"$DESCARTES_STATE_DIR/curl-ran\"\nexit 1\n",
    );
    let ca = Authority::new("ours");
    let (port, heard) = server(ca.issue(&named("localhost")), answer("204 No Content"));
    let hook = format!("https://me:p%40ss@localhost:{port}/hook?x=1");
    let ca = ca.file(&world);
    run(&world, &[hook], &[("SSL_CERT_FILE", ca.to_str().unwrap())]);
    let text = heard.recv_timeout(SOON).unwrap();
    assert!(text.starts_with("POST /hook?x=1 HTTP/1.1\r\n"), "{text}");
    let lower = text.to_ascii_lowercase();
    for header in [
        "authorization: basic bwu6cebzcw==\r\n",
        "content-type: application/json\r\n",
        &format!("host: localhost:{port}\r\n"),
        "user-agent: descartes/",
    ] {
        assert!(lower.contains(header), "{header}: {text}");
    }
    assert!(text.contains("\"event\":\"ended\""), "{text}");
    assert!(!text.contains("p%40ss"), "{text}");
    assert!(!world.state().join("curl-ran").exists());
    assert!(!loop_dir(&world).join("notify.log").exists(), "it was told");
}

#[test]
fn a_server_with_a_bad_certificate_hears_nothing_and_the_log_says_why() {
    let world = World::in_memory();
    let (ca, unknown) = (Authority::new("ours"), Authority::new("unknown"));
    let mut expired = named("localhost");
    expired.not_before = rcgen::date_time_ymd(2001, 1, 1);
    expired.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let cases = [
        (
            unknown.issue(&named("localhost")),
            "issued by an unknown CA",
        ),
        (ca.issue(&named("other.example")), "other.example"),
        (ca.issue(&expired), "is not trusted: expired"),
    ];
    let mut servers = Vec::new();
    let mut hooks = Vec::new();
    for (config, why) in cases {
        let (port, heard) = server(config, answer("200 OK"));
        hooks.push(format!("https://localhost:{port}/"));
        servers.push((port, heard, why));
    }
    let ca = ca.file(&world);
    run(&world, &hooks, &[("SSL_CERT_FILE", ca.to_str().unwrap())]);
    let log = failures(&world, hooks.len());
    for (port, heard, why) in servers {
        let begin = format!(
            "https://localhost:{port}/: the certificate of localhost:{port} is not trusted: "
        );
        let line = log.lines().find(|line| line.contains(&begin));
        assert!(line.is_some_and(|line| line.contains(why)), "{why}: {log}");
        assert!(heard.try_recv().is_err(), "{why}");
    }
}

#[test]
fn no_redirect_is_followed_and_a_missing_ca_file_is_named() {
    let world = World::in_memory();
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let place = elsewhere.local_addr().unwrap();
    let away = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{place}/\r\nContent-Length: 0\r\n\r\n"
    );
    let ca = Authority::new("ours");
    let (port, heard) = server(ca.issue(&named("localhost")), away);
    let hook = format!("https://localhost:{port}/");
    let file = ca.file(&world);
    run(
        &world,
        std::slice::from_ref(&hook),
        &[("SSL_CERT_FILE", file.to_str().unwrap())],
    );
    let log = failures(&world, 1);
    assert!(
        log.contains("answered 307 Temporary Redirect (tried 3 times)"),
        "{log}"
    );
    assert_eq!(heard.try_iter().count(), 3);
    assert!(elsewhere.accept().is_err(), "nobody was sent there");

    let world = World::in_memory();
    run(&world, &[hook], &[("SSL_CERT_FILE", "/nowhere/ca.pem")]);
    let log = failures(&world, 1);
    assert!(
        log.contains("no trusted CA certificates") && log.contains("/nowhere/ca.pem"),
        "{log}"
    );
}

/// Answers `CONNECT` for one connection at a time, and tells what was asked for.
fn proxy() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    let (asked, rx) = channel();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let (mut text, mut byte) = (String::new(), [0; 1]);
            while !text.ends_with("\r\n\r\n") && client.read(&mut byte).is_ok_and(|read| read == 1)
            {
                text.push(char::from(byte[0]));
            }
            let target = text.split(' ').nth(1).unwrap_or_default().to_owned();
            let Ok(mut server) = TcpStream::connect(&target) else {
                continue;
            };
            client
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .unwrap();
            drop(asked.send(text));
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || drop(std::io::copy(&mut from, &mut to)));
            std::thread::spawn(move || drop(std::io::copy(&mut server, &mut client)));
        }
    });
    (place, rx)
}

#[test]
fn https_goes_by_the_proxy_of_the_environment_unless_the_host_is_exempt() {
    let ca = Authority::new("ours");
    let (port, heard) = server(ca.issue(&named("localhost")), answer("200 OK"));
    let (proxy, asked) = proxy();
    let proxy = format!("http://{proxy}");
    for (exempt, by_proxy) in [("", true), ("example.com, localhost", false)] {
        let world = World::in_memory();
        let ca = ca.file(&world);
        let variables = [
            ("SSL_CERT_FILE", ca.to_str().unwrap()),
            ("https_proxy", &proxy),
            ("NO_PROXY", exempt),
        ];
        run(&world, &[format!("https://localhost:{port}/")], &variables);
        assert!(heard.recv_timeout(SOON).unwrap().contains("ended"));
        let asked = asked.try_recv().unwrap_or_default();
        let connect = format!("CONNECT localhost:{port} HTTP/1.1\r\n");
        assert_eq!(asked.starts_with(&connect), by_proxy, "{asked}");
    }
}
