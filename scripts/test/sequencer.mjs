import { createRequire } from 'node:module';

const { default: Sequencer } = createRequire(createRequire(import.meta.url).resolve('jest-cli'))(
  '@jest/test-sequencer',
);

/** Take longest. Jest knows from a run before, but a fresh clone has none. */
const slow = [
  'bench/src/serve/',
  'scripts/init',
  'crash-suite/',
  'scripts/platforms/',
  'dbos/',
  'store/src/(sqlite|postgres)/',
  'examples/(docs|examples)',
  'fault-suite/',
  'hostile-suite/',
  'files/file-tools',
  'client-suite/',
  'mcp-suite/',
  'cli/src/runs/',
  'flow-suite/',
  'store/src/files/',
  'server/src/(clients|properties|scenarios)',
  'millrace/src/(journal/cuts/|journal/compact-log|call/properties|loop)',
].map((pattern) => new RegExp(pattern));

const rank = ({ path }) => {
  const index = slow.findIndex((pattern) => pattern.test(path));
  return index < 0 ? slow.length : index;
};

/** Starts with what takes longest, so that no worker waits for another at the end. */
export default class LongestFirst extends Sequencer {
  sort(tests) {
    const hasTimes = tests.every(({ duration }) => duration !== undefined);
    return super.sort(tests).sort((a, b) => (hasTimes ? 0 : rank(a) - rank(b)));
  }
}
