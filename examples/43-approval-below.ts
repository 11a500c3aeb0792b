// A person answers an agent in a team in a flow. The process that asked has ended: the next one continues where each of them waited.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgent, suspend, suspensionsIn, tool, toolResults } from '@millrace/core';
import { journal } from '@millrace/core/journal';
import { keepSessions } from '@millrace/core/sessions';
import { agentTool, handoff } from '@millrace/core/teams';
import { scriptedModel, text, toolCall } from '@millrace/core/testing';
import { flowAgent } from '@millrace/flow';
import { openFiles } from '@millrace/store';

const [, file = '', given] = process.argv;
const directory = given ?? mkdtempSync(join(tmpdir(), 'millrace-'));
if (given === undefined) spawnSync(process.execPath, [file, directory], { stdio: 'inherit' });
const said = (what: string) => (console.log(what), what);
const look = tool({ name: 'look', description: 'Reads the bill.', run: () => said('12 crowns') });
const ask = tool({ name: 'ask', description: 'Asks a person.', run: () => suspend('Pay?') });
const pay = tool({ name: 'pay', description: 'Pays.', run: () => said('paid') });
// Each process continues the script.
const asks = scriptedModel([toolCall('look')], [toolCall('ask')]);
const pays = scriptedModel([toolCall('pay')], [text('It is paid.')]);
const starts = scriptedModel([toolCall('team', { user_prompt: 'Pay.' })]);
const ends = scriptedModel([text('All done.')]);
const [model, small] = given === undefined ? [pays, ends] : [asks, starts];
const agent = createAgent({ name: 'clerk', model, tools: [look, ask, pay] });
const members = [{ agent, description: 'Pays.' }];
const team = agentTool(handoff({ name: 'team', agents: members }), { description: 'Pays.' });
const document = readFileSync(new URL('../43-approval-below.json', import.meta.url), 'utf8');
const flow = flowAgent(JSON.parse(document), { models: { small }, tools: [team] });
const store = openFiles(directory);
const kept = journal(store.calls);
const chats = keepSessions(flow.with(kept), store.sessions, { journal: kept });
const session = await chats.open('ada');
const [waiting] = suspensionsIn((await session.saveState()).messages);
const input = waiting ? toolResults({ [waiting.toolCall.id]: 'Yes.' }) : 'Pay the miller.';
const { reason, suspensions, text: answer } = await session.call(input);
console.log(reason, suspensions?.map(({ toolCall }) => toolCall.id) ?? answer);
