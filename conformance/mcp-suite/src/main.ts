import { play, type Played, revisions } from './scenarios.js';
import type { Side } from './unsupported.js';

const help = `npm run mcp-conformance -- [server | client] [part of a name …]

Runs the scenarios that @modelcontextprotocol/conformance plays for the versions ${revisions.join(' and ')} of the
protocol: those for servers against serveMcp, and those for clients against mcp(…). Prints those whose names contain one
of the parts, or all, and exits with 1 if one passes or fails that should not. Those expected to fail are listed in
conformance/mcp-suite/src/unsupported.ts.

The servers of the scenarios for clients listen on every interface of this machine while they run: run them in a
network that you trust. Those for servers stay on 127.0.0.1; the tests run these.`;

const sides: readonly Side[] = ['server', 'client'];
const isSide = (word: string): word is Side => sides.some((side) => side === word);

const words = process.argv.slice(2);
if (words.some((word) => word.startsWith('-'))) {
  const isHelp = words.every((word) => word === '--help' || word === '-h');
  (isHelp ? console.log : console.error)(help);
  process.exitCode = isHelp ? 0 : 2;
} else {
  const chosen = words.filter(isSide);
  const parts = words.filter((word) => !isSide(word));
  process.exitCode = await playAll(chosen.length === 0 ? sides : chosen, parts);
}

async function playAll(chosen: readonly Side[], parts: readonly string[]): Promise<number> {
  const played: Played[] = [];
  for (const side of chosen) {
    for (const revision of revisions) {
      const isChosen = ({ name }: Played): boolean =>
        parts.length === 0 || parts.some((part) => name.includes(part));
      played.push(...(await play(side, revision)).filter(isChosen));
    }
  }
  if (played.length === 0) {
    console.error(`No scenario has a name with ${parts.join(' or ')}.`);
    return 2;
  }
  for (const one of played) console.log(lineOf(one));
  const wrong = played.filter(({ isWrong }) => isWrong);
  const failed = played.filter(({ problems }) => problems.length > 0);
  const expected = failed.filter(({ isWrong }) => !isWrong);
  console.log(
    `\n${played.length - failed.length} passed, ${expected.length} failed as expected, ${wrong.length} wrong`,
  );
  return wrong.length > 0 ? 1 : 0;
}

function lineOf(played: Played): string {
  const { side, revision, name, isRequired, passed, problems, reason, isWrong } = played;
  const about = `${side} ${revision}  ${isRequired ? 'required' : 'optional'}  ${name.padEnd(44)}`;
  if (problems.length === 0) {
    return isWrong
      ? `passes  ${about}  no longer unsupported`
      : `passed  ${about}  ${passed} checks`;
  }
  return isWrong ? `FAILED  ${about}  ${problems.join('; ')}` : `failed  ${about}  ${reason}`;
}
