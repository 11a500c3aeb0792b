// Sandboxes: file systems that run code.
export { bubblewrap, type BubblewrapOptions } from './bubblewrap.js';
export { docker, type DockerOptions } from './docker.js';
export { javaScript, type JavaScriptOptions } from './java-script.js';
