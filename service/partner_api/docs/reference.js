// What the reference does beyond being read: copying, searching, choosing a language, and trying an
// endpoint with a test key. Without scripts the page has everything but these.
"use strict";

const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

for (const block of document.querySelectorAll("pre")) {
  const button = make("button", { type: "button", className: "copy", textContent: "Copy" });
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  block.before(make("div", { className: "copyable" }, button));
  block.previousElementSibling.append(block);
}

// One language for the whole page, and for the next visit.
const choose = (language) => {
  for (const input of document.querySelectorAll(`.samples input[value="${language}"]`)) input.checked = true;
};
for (const input of document.querySelectorAll(".samples input")) {
  input.addEventListener("change", () => {
    localStorage.setItem("language", input.value);
    choose(input.value);
  });
}
choose(localStorage.getItem("language") ?? "curl");

const found = document.getElementById("found");
const search = document.getElementById("search");
const RESULTS_MAX = 12;
const places = [...document.querySelectorAll("main h2, main h3, .fields td:first-child code")].map((element) => ({
  text: element.textContent.trim(),
  anchor: element.closest("[id]:not(main)")?.id,
  of: element.matches("code") ? element.closest("section")?.querySelector("h2")?.textContent.trim() : "",
}));
search.closest("p").hidden = false;
search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  const hits = wanted ? places.filter((one) => one.anchor && one.text.toLowerCase().includes(wanted)) : [];
  found.replaceChildren(
    ...hits.slice(0, RESULTS_MAX).map((one) => {
      const link = make("a", { href: `#${one.anchor}`, textContent: one.text });
      if (one.of) link.append(" ", make("small", { textContent: one.of }));
      return make("li", {}, link);
    }),
    ...(wanted && !hits.length ? [make("li", { textContent: "Nothing has this name." })] : []),
  );
});

// The key stays in this page's memory: it is sent to this API, and kept nowhere.
const TEST_KEY = /^pk_test_\S+$/;
const keys = document.querySelectorAll('.try input[name="key"]');

// Whoever is signed in to the console need not paste one: its own forms make a key that ends within the
// hour, as they do for a person.
const OFFER = "/console/reference";
const pageOf = async (path, options) => {
  const answer = await fetch(path, { credentials: "same-origin", ...options });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
};
async function lend(form, said) {
  const body = new URLSearchParams(new FormData(form));
  const made = await pageOf(form.getAttribute("action"), { method: "POST", body });
  const [key, entity] = ["key", "entity"].map((one) => made.querySelector(`[data-lent="${one}"] code`)?.textContent);
  if (!key) {
    said.textContent = made.querySelector("h1")?.textContent ?? "The console made no key.";
    return;
  }
  for (const one of keys) one.value = key;
  for (const one of document.querySelectorAll('.try [data-parameter="entity_id"]')) one.value = entity;
  for (const one of document.querySelectorAll(".try textarea"))
    one.value = one.value.replace(/("entity_id": )"[^"]*"/g, `$1"${entity}"`);
  said.textContent = `A test key of ${form.dataset.partner}, for an hour. The next one replaces it.`;
}
const offer = async (said) => {
  said.textContent = "Asking the console…";
  const forms = [...(await pageOf(OFFER)).querySelectorAll("form[data-partner]")];
  if (forms.length === 1) return lend(forms[0], said);
  said.replaceChildren(
    ...(forms.length
      ? ["Whose key? ", ...forms.flatMap((form) => {
          const choice = make("button", { type: "button", textContent: `A test key of ${form.dataset.partner}` });
          choice.addEventListener("click", () => attempt(said, () => lend(form, said)));
          return [choice, " "];
        })]
      : [make("a", { href: OFFER, textContent: "Sign in to the console" }), " as a member of an approved partner."]),
  );
};
async function attempt(said, deed) {
  try {
    await deed();
  } catch {
    said.textContent = "The console did not answer. Is the network all right?";
  }
}
for (const place of document.querySelectorAll(".lend")) {
  const said = place.querySelector("[role=status]");
  place.querySelector("button").addEventListener("click", () => attempt(said, () => offer(said)));
}
for (const form of document.querySelectorAll(".try")) {
  form.closest("details").hidden = false;
  const answer = form.querySelector("output");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { key, body } = form.elements;
    key.value = key.value.trim();
    for (const other of keys) other.value = key.value;
    if (!TEST_KEY.test(key.value)) {
      answer.textContent = "This takes a test key, which begins with pk_test_. Keep live keys on your servers.";
      return;
    }
    const query = new URLSearchParams();
    for (const one of form.querySelectorAll("[data-parameter]")) {
      if (one.value) query.append(one.dataset.parameter, one.value);
    }
    let path = form.dataset.path;
    for (const one of form.querySelectorAll("[data-in-path]")) {
      path = path.replace(`{${one.dataset.inPath}}`, encodeURIComponent(one.value));
    }
    answer.textContent = "Waiting for the answer…";
    try {
      const response = await fetch(query.size ? `${path}?${query}` : path, {
        method: form.dataset.method,
        headers: {
          Authorization: `Bearer ${key.value}`,
          ...(body ? { "Content-Type": "application/json" } : {}),
        },
        body: body?.value,
        credentials: "omit",
      });
      const text = await response.text();
      answer.textContent = `${response.status} ${response.headers.get("X-Request-Id") ?? ""}\n${pretty(text)}`;
    } catch {
      answer.textContent = "There was no answer. Is the network all right?";
    }
  });
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
