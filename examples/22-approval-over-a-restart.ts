// An approval that outlasts the process: it is killed while the approver is asked. The next process resumes the call and asks again.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Approver, createAgent, only, requireApproval, tool } from 'millrace';
import { type Journal, journal } from 'millrace/journal';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { openFiles } from '@millrace/store';

const durableIn = (directory: string) => journal(openFiles(directory, { leaseMs: 2_000 }).calls);

const agentIn = (durable: Journal, approve: Approver) => {
  const pay = tool({
    name: 'pay',
    description: 'Pays the miller.',
    run: (_, { toolCallId }) => `Paid, by the tool call ${toolCallId}.`,
  });
  const answer: ScriptedAnswer = ({ messages }) =>
    messages.at(-1)?.role === 'tool' ? [text('The miller is paid.')] : [toolCall('pay')];
  const tools = [requireApproval(pay, approve)];
  return createAgent({ model: scriptedModel(answer, answer), tools, use: [durable] });
};

const [, file = '', given] = process.argv;
if (given !== undefined) {
  const agent = agentIn(durableIn(given), () => process.kill(process.pid, 'SIGKILL'));
  await agent.call('Pay the miller.', { callId: 'pay' });
}
const directory = mkdtempSync(join(tmpdir(), 'millrace-'));
console.log('killed by', spawnSync(process.execPath, [file, directory]).signal);

const durable = durableIn(directory);
const agent = agentIn(durable, ({ toolCallId }) => (console.log('asked again:', toolCallId), true));
agent.events$.pipe(only('stepReplayed')).subscribe(({ step }) => console.log('as before:', step));
const { content, toolCalls } = await durable.resume(agent, 'pay');
console.log(toolCalls[0]?.output, content);
rmSync(directory, { recursive: true });
