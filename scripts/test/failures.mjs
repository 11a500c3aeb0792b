import { relative } from 'node:path';
import { root } from '../workspaces.mjs';

/** A title as an argument of `-t`, which takes a pattern. */
const quoted = (title) =>
  `'${title.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll("'", `'\\''`)}'`;

const linesOf = (text) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

/** The failed tests of a report by Jest, each with the command that repeats it, and with its error if that is no counterexample. */
export function failuresOf({ testResults }) {
  return testResults.flatMap(({ name, message, assertionResults }) => {
    const file = relative(root, name).replaceAll('\\', '/');
    const failed = assertionResults.filter(({ status }) => status === 'failed');
    if (failed.length === 0 && message !== '')
      return [`${file}: ${linesOf(message).slice(0, 4).join('\n  ')}`];
    return failed.map(({ fullName, failureMessages }) => {
      const text = failureMessages.join('\n');
      const [, seed, path] = /\{ seed: (-?\d+), path: "([\d:]+)"/.exec(text) ?? [];
      const lines =
        seed === undefined
          ? [...linesOf(text).slice(0, 1), `npm test -- ${file} -t ${quoted(fullName)}`]
          : [`npm run fuzz -- ${file} -t ${quoted(fullName)} --repeat=${seed}/${path}`];
      return [`${file}: ${fullName}`, ...lines].join('\n  ');
    });
  });
}
