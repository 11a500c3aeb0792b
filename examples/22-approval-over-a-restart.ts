// An approval that outlives the process: it is killed while somebody is asked, and the next one asks again, and goes on.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Approver, createAgent, only, tool } from '@millrace/core';
import { type ScriptedAnswer, scriptedModel, text, toolUse } from '@millrace/core/testing';
import { openFiles } from '@millrace/store';

const agentIn = (directory: string, approve: Approver) => {
  const pay = tool({
    name: 'pay',
    description: 'Pays the miller.',
    approve,
    run: (_, { idempotencyKey }) => `Paid, with the key ${idempotencyKey}.`,
  });
  const answer: ScriptedAnswer = ({ messages }) =>
    messages.at(-1)?.role === 'tool' ? [text('The miller is paid.')] : [toolUse('pay')];
  const journal = openFiles(directory, { leaseMs: 2_000 }).calls;
  return createAgent({ model: scriptedModel(answer, answer), tools: [pay], journal });
};

const [, file = '', given] = process.argv;
if (given !== undefined) {
  const agent = agentIn(given, () => process.kill(process.pid, 'SIGKILL'));
  await agent.call('Pay the miller.', { callId: 'pay' });
}
const directory = mkdtempSync(join(tmpdir(), 'millrace-'));
console.log('killed by', spawnSync(process.execPath, [file, directory]).signal);

const agent = agentIn(directory, ({ toolUseId }) => (console.log('asked again:', toolUseId), true));
agent.events$.pipe(only('stepReplayed')).subscribe(({ step }) => console.log('as before:', step));
const { content, toolUses } = await agent.resume('pay');
console.log(toolUses[0]?.output, content);
rmSync(directory, { recursive: true });
