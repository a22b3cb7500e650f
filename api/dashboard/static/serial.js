// The serial console: xterm.js. A terminal shows what the guest sends, and sends what is typed; nothing else is done.
import { onKeys, onText, over, place, protocols, say, url } from "./connection.js";
import { Terminal } from "./xterm/lib/xterm.mjs";

const terminal = new Terminal({ scrollback: 2000, cursorBlink: false });
terminal.open(place);
const socket = new WebSocket(url, protocols);
const encoder = new TextEncoder();
const send = (text) => {
  if (socket.readyState === WebSocket.OPEN) socket.send(encoder.encode(text));
};
socket.binaryType = "arraybuffer";
socket.addEventListener("open", () => {
  say("Connected. It has one user at a time: whoever opens it next takes it over.");
  terminal.focus();
});
socket.addEventListener("message", (event) => terminal.write(new Uint8Array(event.data)));
socket.addEventListener("close", (event) => over(event.reason && `It has ended: ${event.reason}.`));
terminal.onData(send);
onKeys({ "ctrl-c": () => send("\x03"), "ctrl-d": () => send("\x04") }, () => terminal.focus());
onText((text) => send(text.replace(/\n/g, "\r")), () => terminal.focus());
