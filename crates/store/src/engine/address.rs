//! Addresses of PostgreSQL with several hosts, in the form that libpq gives them: `postgres://user@one:5432,two:5433/database`, or
//! with lists in `?host=one,two&port=5432,5433`. The driver knows addresses of one host, so each host gets an address of its own.

use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;

use super::error::{Error, Result};

/// The parameter of libpq that says which of the hosts is wanted.
const ATTRIBUTES: &str = "target_session_attrs";
/// Its values that the service can do something with: it always takes the primary.
const PRIMARY: [&str; 3] = ["read-write", "primary", "any"];

/// The parts of an address.
struct AddressParts<'a> {
    scheme: &'a str,
    /// With its `@`, where there is one.
    user: &'a str,
    /// Hosts with their ports, as they are written.
    hosts: Vec<&'a str>,
    /// With its `/`, where there is one.
    database: &'a str,
    /// The parameters without those that the driver does not know.
    parameters: Vec<(&'a str, &'a str)>,
}

/// The options of each host of an address, in its order.
///
/// # Errors
/// [`Error::Address`], which repeats no part that may hold a password.
pub(super) fn parse_postgres_address(url: &str) -> Result<Vec<PgConnectOptions>> {
    let parts = split_address(url)?;
    let (hosts, ports) = (parts.list("host"), parts.list("port"));
    let many = parts.hosts.len().max(hosts.len()).max(1);
    if parts.hosts.len() > 1 && hosts.len() > 1 {
        return Err(wrong_address("names hosts before and behind its “?”"));
    }
    let has_gap = |texts: &[&str]| texts.len() > 1 && texts.iter().any(|host| host.is_empty());
    if has_gap(&parts.hosts) || has_gap(&hosts) {
        return Err(wrong_address("has an empty host between its commas"));
    }
    if ports.len() > 1 && ports.len() != many {
        return Err(wrong_address("needs one port, or as many ports as hosts"));
    }
    (0..many).map(|at| parts.options_at(at, many)).collect()
}

fn split_address(url: &str) -> Result<AddressParts<'_>> {
    let (scheme, rest) = url
        .split_once("://")
        .ok_or_else(|| wrong_address("has no “://”"))?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    let mut parameters = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if name != ATTRIBUTES {
            parameters.push((name, value));
        } else if !PRIMARY.contains(&value) {
            return Err(wrong_address(
                "has another target_session_attrs than read-write: the service writes, so it needs the primary",
            ));
        }
    }
    Ok(AddressParts {
        scheme,
        user,
        hosts: hosts.split(',').collect(),
        database,
        parameters,
    })
}

impl AddressParts<'_> {
    /// The values of a parameter, which commas separate.
    fn list(&self, name: &str) -> Vec<&str> {
        let values = self.parameters.iter().filter(|(known, _)| *known == name);
        values.flat_map(|(_, value)| list_in_address(value)).collect()
    }

    /// The options of the host at this place.
    fn options_at(&self, at: usize, many: usize) -> Result<PgConnectOptions> {
        let host = self
            .hosts
            .get(at)
            .or(self.hosts.first())
            .copied()
            .unwrap_or_default();
        // A list behind the “?” says another one.
        let host = if many > 1 && host.is_empty() {
            "localhost"
        } else {
            host
        };
        let mut url = format!("{}://{}{host}{}", self.scheme, self.user, self.database);
        for (number, (name, value)) in self.parameters.iter().enumerate() {
            url.push(if number == 0 { '?' } else { '&' });
            let values = match *name {
                "host" | "port" => list_in_address(value),
                _ => vec![*value],
            };
            let value = values.get(at).or(values.first()).copied().unwrap_or_default();
            url.extend([name, "=", value]);
        }
        let options = PgConnectOptions::from_str(&url)
            .map_err(|error| Error::Address(format!("the database address is not one: {error}")))?;
        // The driver looks brackets up as a part of the name.
        let bare = options
            .get_host()
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        Ok(match bare.map(str::to_owned) {
            Some(bare) => options.host(&bare),
            None => options,
        })
    }
}

/// The parts between commas, which may be written in either way.
fn list_in_address(value: &str) -> Vec<&str> {
    value
        .split(',')
        .flat_map(|part| part.split("%2C"))
        .flat_map(|part| part.split("%2c"))
        .collect()
}

fn wrong_address(what: &str) -> Error {
    Error::Address(format!("the database address {what}"))
}

#[cfg(test)]
mod tests {
    use sqlx::ConnectOptions;

    use super::*;

    /// Where each host of an address is: `host:port`, or the folder of its socket.
    fn places(url: &str) -> Vec<String> {
        let hosts = parse_postgres_address(url).expect(url);
        let place = |connect: &PgConnectOptions| match connect.get_socket() {
            Some(folder) => folder.display().to_string(),
            None => format!("{}:{}", connect.get_host(), connect.get_port()),
        };
        hosts.iter().map(place).collect()
    }

    #[test]
    fn every_host_of_an_address_is_found_in_its_order() {
        for (url, expected) in [
            ("postgres://u:p@one/db", vec!["one:5432"]),
            ("postgresql://u@one:5433/db", vec!["one:5433"]),
            (
                "postgres://u@one:1,two:2,three/db",
                vec!["one:1", "two:2", "three:5432"],
            ),
            ("postgres://u@[::1]:1,[fe80::2]/db", vec!["::1:1", "fe80::2:5432"]),
            (
                "postgres://u@one,two:7/db?target_session_attrs=read-write",
                vec!["one:5432", "two:7"],
            ),
            ("postgres://u@/db?host=one,two&port=1,2", vec!["one:1", "two:2"]),
            ("postgres://u@/db?host=one%2Ctwo&port=9", vec!["one:9", "two:9"]),
            (
                "postgres:///db?host=/run/one,/run/two",
                vec!["/run/one", "/run/two"],
            ),
            ("postgres://u@localhost/db?host=/run/one", vec!["/run/one"]),
        ] {
            assert_eq!(places(url), expected, "{url}");
        }
    }

    #[test]
    fn each_host_has_the_user_the_database_and_the_parameters() {
        let url =
            "postgres://us%40er:p%2Cw@one,two/db?sslmode=require&target_session_attrs=primary&dbname=other";
        for options in parse_postgres_address(url).expect("an address") {
            assert_eq!(options.get_username(), "us@er");
            assert_eq!(options.get_database(), Some("other"));
            assert_eq!(options.to_url_lossy().password(), Some("p%2Cw"));
            assert!(matches!(
                options.get_ssl_mode(),
                sqlx::postgres::PgSslMode::Require
            ));
        }
    }

    #[test]
    fn an_address_with_a_fault_is_refused_in_words() {
        for (url, word) in [
            (
                "postgres://u:secret@one,two/db?target_session_attrs=standby",
                "it needs the primary",
            ),
            (
                "postgres://u:secret@one/db?target_session_attrs=read-only",
                "it needs the primary",
            ),
            ("postgres://u:secret@one,,two/db", "empty host"),
            (
                "postgres://u:secret@one,two/db?host=three,four",
                "before and behind",
            ),
            (
                "postgres://u:secret@/db?host=one,two&port=1,2,3",
                "as many ports as hosts",
            ),
            ("postgres://u:secret@one:x,two/db", "is not one"),
        ] {
            let why = parse_postgres_address(url).expect_err(url).to_string();
            assert!(why.contains(word) && !why.contains("secret"), "{url}: {why}");
        }
    }
}
