//! A browser as far as the pages need one: it keeps a cookie, follows nothing by itself, and fills in forms as they are
//! shown.

use std::collections::BTreeMap;

use reqwest::header::{CONTENT_TYPE, COOKIE, HeaderMap, LOCATION, SET_COOKIE};
use reqwest::{Client, Method, StatusCode, redirect};

use crate::support::client::NO_CERTIFICATES;
use crate::support::server::Server;

/// Visits the pages of one service.
#[derive(Debug)]
pub(crate) struct Browser {
    http: Client,
    base: String,
    /// The session, as the cookie header says it.
    pub(crate) cookie: Option<String>,
    /// The browser's statement about the origin of a form.
    pub(crate) site: &'static str,
}

/// A page that was loaded.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

/// A form and the values of its fields.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Form(pub(crate) BTreeMap<String, String>);

impl Browser {
    pub(crate) fn new(server: &Server) -> Self {
        // The client is built without a provider of its own; another test may have installed one before.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = Client::builder()
            .no_proxy()
            .tls_certs_only(NO_CERTIFICATES)
            .redirect(redirect::Policy::none())
            .build();
        Self {
            http: http.expect("a client can be made"),
            base: format!("http://{}", server.address()),
            cookie: None,
            site: "same-origin",
        }
    }

    /// A browser that is signed in with a key.
    pub(crate) async fn signed_in(server: &Server, key: &str) -> Self {
        let mut browser = Self::new(server);
        let page = browser
            .post("/portal/sign-in", &Form::default().with("key", key))
            .await;
        assert_eq!(page.status, StatusCode::SEE_OTHER, "{page:?}");
        browser
    }

    pub(crate) async fn get(&self, path: &str) -> Page {
        self.send(Method::GET, path, None).await
    }

    /// Sends a form, and keeps the cookie that comes back.
    pub(crate) async fn post(&mut self, path: &str, form: &Form) -> Page {
        let page = self.send(Method::POST, path, Some(form)).await;
        if let Some(set) = page.headers.get(SET_COOKIE) {
            let pair = set.to_str().expect("a cookie is ASCII").split(';').next();
            self.cookie = pair.map(str::to_owned);
        }
        page
    }

    /// An answer that goes on.
    pub(crate) async fn stream(&self, path: &str) -> reqwest::Response {
        self.answer(Method::GET, path, None).await
    }

    /// The offer form of the first page.
    pub(crate) async fn form(&self) -> Form {
        self.get("/portal").await.form()
    }

    /// Sends a form of several parts with a file, its token first.
    pub(crate) async fn upload(&self, path: &str, token: &str, (name, content): (&str, &[u8])) -> Page {
        let mut body = format!(
            "--part\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\n{token}\r\n--part\r\n\
             Content-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n"
        )
        .into_bytes();
        body.extend(content);
        body.extend(b"\r\n--part--\r\n");
        let request = self
            .http
            .request(Method::POST, format!("{}{path}", self.base))
            .header(COOKIE, self.cookie.as_deref().unwrap_or_default())
            .header("sec-fetch-site", self.site)
            .header(CONTENT_TYPE, "multipart/form-data; boundary=part")
            .body(body);
        Self::load(request.send().await.expect("the service answers")).await
    }

    async fn answer(&self, method: Method, path: &str, form: Option<&Form>) -> reqwest::Response {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(cookie) = &self.cookie {
            request = request.header(COOKIE, cookie);
        }
        if let Some(form) = form {
            request = request
                .header("sec-fetch-site", self.site)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(form.encoded());
        }
        request.send().await.expect("the service answers")
    }

    async fn send(&self, method: Method, path: &str, form: Option<&Form>) -> Page {
        Self::load(self.answer(method, path, form).await).await
    }

    async fn load(response: reqwest::Response) -> Page {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.text().await.expect("a page is text");
        Page {
            status,
            headers,
            body,
        }
    }
}

impl Page {
    /// Where it leads on to.
    pub(crate) fn location(&self) -> &str {
        assert_eq!(self.status, StatusCode::SEE_OTHER, "{self:?}");
        self.headers[LOCATION].to_str().expect("a path is ASCII")
    }

    /// The fields of the offer form, as they would be sent.
    pub(crate) fn form(&self) -> Form {
        let start = self
            .body
            .find("<form class=\"card\" id=\"request\"")
            .expect("there is an offer form");
        self.fields(start)
    }

    /// The fields of the form that begins at `start`.
    pub(crate) fn fields(&self, start: usize) -> Form {
        let form = &self.body[start..];
        let form = &form[..form.find("</form>").expect("a form has an end")];
        let mut fields = Form::default();
        for input in form.split("<input").skip(1) {
            let input = &input[..input.find('>').expect("an element has an end")];
            let chosen = input.contains("type=\"radio\"") || input.contains("type=\"checkbox\"");
            if let Some(name) = attribute(input, "name")
                && (!chosen || input.contains(" checked"))
            {
                fields = fields.with(&name, &attribute(input, "value").unwrap_or_default());
            }
        }
        for select in form.split("<select").skip(1) {
            let (head, options) = select.split_once('>').expect("an element has an end");
            let options = options.split("</select>").next().unwrap_or_default();
            // The first one where none is chosen.
            let options: Vec<_> = options.split("<option").skip(1).collect();
            let chosen = options.iter().find(|option| option.contains(" selected"));
            if let Some((name, option)) = attribute(head, "name").zip(chosen.or(options.first())) {
                fields = fields.with(&name, &attribute(option, "value").unwrap_or_default());
            }
        }
        fields
    }

    /// Where the link of these words leads to.
    pub(crate) fn link(&self, words: &str) -> String {
        let end = self.body.find(&format!(">{words}</a>"));
        let end = end.unwrap_or_else(|| panic!("no link {words:?} in {}", self.body));
        let start = self.body[..end].rfind("<a ").expect("a link has a beginning");
        attribute(&self.body[start..end], "href").expect("a link leads somewhere")
    }

    /// The fields of the form that is sent to an address.
    pub(crate) fn form_to(&self, address: &str) -> Form {
        let at = self.body.find(&format!("action=\"{address}\""));
        self.fields(at.unwrap_or_else(|| panic!("no form to {address} in {}", self.body)))
    }

    /// The attributes of the element that has this id.
    pub(crate) fn element(&self, id: &str) -> &str {
        let at = self
            .body
            .find(&format!("id=\"{id}\""))
            .unwrap_or_else(|| panic!("no {id} in {}", self.body));
        let start = self.body[..at].rfind('<').expect("an id stands in an element");
        let end = at + self.body[at..].find('>').expect("an element has an end");
        &self.body[start..end]
    }
}

impl Form {
    /// The same with another text in a field.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.0.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The same without a field.
    #[must_use]
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// As a body or a query.
    pub(crate) fn encoded(&self) -> String {
        let mut encoded = form_urlencoded::Serializer::new(String::new());
        encoded.extend_pairs(&self.0);
        encoded.finish()
    }
}

/// The value of an attribute of an element, read as a browser reads it.
fn attribute(element: &str, name: &str) -> Option<String> {
    let (_, after) = element.split_once(&format!(" {name}=\""))?;
    let (value, _) = after.split_once('"')?;
    let value = value
        .replace("&#60;", "<")
        .replace("&#62;", ">")
        .replace("&#34;", "\"")
        .replace("&#39;", "'");
    Some(value.replace("&#38;", "&"))
}
