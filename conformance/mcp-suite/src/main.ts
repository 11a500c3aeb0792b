import { type Played, playClient, playServer, scenariosOf } from './scenarios.js';
import type { Side } from './unsupported.js';

const help = `npm run mcp-conformance -- [server | client] [part of a name …]

Runs the scenarios of @modelcontextprotocol/conformance whose names contain one of the parts, or all: those for servers
against serveMcp, and those for clients against mcp(…). Prints the passed and the failed ones, and exits with 1 if one
passes or fails that should not. Those expected to fail are listed in conformance/mcp-suite/src/unsupported.ts.

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
  process.exitCode = await play(chosen.length === 0 ? sides : chosen, parts);
}

async function play(chosen: readonly Side[], parts: readonly string[]): Promise<number> {
  const played: Played[] = [];
  for (const side of chosen) {
    const names = (await scenariosOf(side)).filter(
      (name) => parts.length === 0 || parts.some((part) => name.includes(part)),
    );
    if (side === 'server' && names.length > 0) played.push(...(await playServer(names)));
    if (side === 'client') for (const name of names) played.push(await playClient(name));
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

function lineOf({ side, name, passed, problems, reason, isWrong }: Played): string {
  const about = `${side.padEnd(6)}  ${name.padEnd(42)}`;
  if (problems.length === 0) {
    return isWrong
      ? `passes  ${about}  no longer unsupported`
      : `passed  ${about}  ${passed} checks`;
  }
  return isWrong ? `FAILED  ${about}  ${problems.join('; ')}` : `failed  ${about}  ${reason}`;
}
