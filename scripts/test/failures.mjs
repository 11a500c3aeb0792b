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

/** One line for each failed test of a report by Jest, with the command that repeats it. */
export function failuresOf({ testResults }) {
  return testResults.flatMap(({ name, message, assertionResults }) => {
    const file = relative(root, name).replaceAll('\\', '/');
    const failed = assertionResults.filter(({ status }) => status === 'failed');
    if (failed.length === 0 && message !== '')
      return [`${file}: ${linesOf(message).slice(0, 4).join('\n  ')}`];
    return failed.map(({ fullName, failureMessages }) => {
      const [, seed, path] =
        /\{ seed: (-?\d+), path: "([\d:]+)"/.exec(failureMessages.join('\n')) ?? [];
      const command =
        seed === undefined
          ? `npm test -- ${file} -t ${quoted(fullName)}`
          : `npm run fuzz -- ${file} -t ${quoted(fullName)} --repeat=${seed}/${path}`;
      return `${file}: ${fullName}\n  ${command}`;
    });
  });
}
