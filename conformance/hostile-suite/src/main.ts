import { scenes } from './index.js';
import type { Row } from './scene.js';
import { tableOf } from './table.js';

const help = `npm run hostile -- [part of a promise or of an attack …]

Attacks Millrace as models, users, clients, tools, pages, MCP servers and processes that write to a store could, and prints a
row for each attack: the promise, the attack, and "held" or "BROKE". Everything stays on loopback. With parts of names,
it plays only the promises whose text or attacks contain one of them. It exits with 1 if a promise broke.

docs/threat-model.md lists the promises.`;

const parts = process.argv.slice(2);
if (parts.includes('--help') || parts.includes('-h')) console.log(help);
else process.exitCode = await run();

async function run(): Promise<number> {
  const chosen = scenes.filter(
    ({ promise, attacks }) =>
      parts.length === 0 || parts.some((part) => [promise, ...attacks].join('\n').includes(part)),
  );
  if (chosen.length === 0) {
    const promises = scenes.map(({ promise }) => `  ${promise}`).join('\n');
    console.error(
      `No promise or attack contains ${parts.join(' or ')}. The promises:\n${promises}`,
    );
    return 2;
  }
  const rows: Row[] = [];
  for (const [index, scene] of chosen.entries()) {
    if (process.stderr.isTTY) process.stderr.write(`\r${index + 1} of ${chosen.length} `);
    rows.push(...(await scene.play()));
  }
  if (process.stderr.isTTY) process.stderr.write('\r');
  console.log(tableOf(rows));
  return rows.some(({ broke }) => broke !== undefined) ? 1 : 0;
}
