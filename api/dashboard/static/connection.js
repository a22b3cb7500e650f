// What both consoles share: where they lead, and what is said of them. The token is used once, and kept nowhere.
const address = new URL("connect", location.href);
address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
address.hash = "";
export const url = address.href;
export const protocols = ["binary", location.hash.slice(1)];
history.replaceState(null, "", location.pathname);

export const place = document.getElementById("console");

export function say(words) {
  document.getElementById("state").textContent = words;
}

export function over(reason) {
  say(`${reason || "The connection has ended, or could not be made."} A console's address works once: ask for a new one.`);
}

export function onKeys(keys, focus) {
  document.getElementById("keys").addEventListener("click", (event) => {
    const press = keys[event.target.dataset.keys];
    if (press) {
      press();
      focus();
    }
  });
}

export function onText(type, focus) {
  const text = document.getElementById("text");
  document.getElementById("type").addEventListener("click", () => {
    type(text.value);
    text.value = "";
    focus();
  });
}
