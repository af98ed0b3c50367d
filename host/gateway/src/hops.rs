//! Who a client is behind proxies of one's own. X-Forwarded-For is believed from trusted hops
//! alone; from anybody else it is a text that a client made up.

use std::net::IpAddr;

use hyper::header::{HeaderMap, HeaderValue};
use ipnet::IpNet;

use crate::limits;

/// The field.
pub(crate) const FORWARDED_FOR: &str = "x-forwarded-for";

/// Proxies that say the truth.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hops(Vec<IpNet>);

impl Hops {
    /// From networks or single addresses; the first that is neither comes back.
    pub(crate) fn parse(texts: &[String]) -> Result<Self, (usize, String)> {
        let network = |text: &String| {
            text.parse::<IpNet>()
                .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        };
        let networks = texts.iter().enumerate().map(|(index, text)| {
            network(text).map_err(|_| {
                let problem = format!("{text:?} is no address or network, such as 10.0.0.0/8");
                (index, problem)
            })
        });
        networks.collect::<Result<_, _>>().map(Hops)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client's address: the last one in the list that is no trusted hop.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.trusts(client) {
            return client;
        }
        let fields = headers.get_all(FORWARDED_FOR).iter().rev();
        let hops = fields
            .filter_map(|field| field.to_str().ok())
            .flat_map(|field| field.rsplit(','))
            .take(limits::HOPS);
        for hop in hops {
            // Behind what cannot be read nothing can be believed.
            let Ok(address) = hop.trim().parse::<IpAddr>() else {
                break;
            };
            client = address.to_canonical();
            if !self.trusts(client) {
                break;
            }
        }
        client
    }

    /// What the CA is told: what trusted hops said, and who has just connected.
    pub(crate) fn forwarded(&self, peer: IpAddr, headers: &HeaderMap) -> Option<HeaderValue> {
        let peer = peer.to_canonical();
        let mut text = String::new();
        if self.trusts(peer) {
            for field in headers.get_all(FORWARDED_FOR) {
                if let Ok(field) = field.to_str() {
                    text.push_str(field);
                    text.push_str(", ");
                }
            }
        }
        text.push_str(&peer.to_string());
        HeaderValue::try_from(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(hops: &[&str], peer: &str, fields: &[&str]) -> String {
        let hops: Vec<String> = hops.iter().map(|hop| (*hop).to_owned()).collect();
        let hops = Hops::parse(&hops).expect("networks");
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(
                FORWARDED_FOR,
                HeaderValue::from_str(field).expect("a value"),
            );
        }
        hops.client(peer.parse().expect("an address"), &headers)
            .to_string()
    }

    #[test]
    fn only_trusted_hops_are_believed() {
        let hops = ["10.0.0.0/8", "fd00::1"];
        for (peer, fields, expected) in [
            ("192.0.2.1", &["203.0.113.9"][..], "192.0.2.1"),
            ("10.1.1.1", &[], "10.1.1.1"),
            ("10.1.1.1", &["203.0.113.9"], "203.0.113.9"),
            ("::ffff:10.1.1.1", &["203.0.113.9"], "203.0.113.9"),
            ("fd00::1", &["2001:db8::7, 10.2.2.2"], "2001:db8::7"),
            // The first one was made up by the client behind 198.51.100.4.
            ("10.1.1.1", &["203.0.113.9, 198.51.100.4"], "198.51.100.4"),
            ("10.1.1.1", &["203.0.113.9", "198.51.100.4"], "198.51.100.4"),
            ("10.1.1.1", &["203.0.113.9, unknown, 10.2.2.2"], "10.2.2.2"),
            ("10.1.1.1", &["10.3.3.3, 10.2.2.2"], "10.3.3.3"),
        ] {
            assert_eq!(client(&hops, peer, fields), expected, "{peer} {fields:?}");
        }
    }

    #[test]
    fn a_long_list_is_looked_at_to_an_end() {
        let list = vec!["10.0.0.1"; 1000].join(",");
        assert_eq!(
            client(
                &["10.0.0.0/8"],
                "10.1.1.1",
                &[&format!("203.0.113.9,{list}")]
            ),
            "10.0.0.1"
        );
    }

    #[test]
    fn what_is_no_network_is_named() {
        let wrong = Hops::parse(&["10.0.0.0/8".to_owned(), "10.0.0.0/33".to_owned()]);
        assert_eq!(wrong.map(|_| ()).map_err(|(index, _)| index), Err(1));
    }
}
