import { describe, expect, it } from '@jest/globals';
import { createAgent, requireApproval, tool } from 'millrace';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import { approvalQueue } from '@millrace/server/approvals';
import { messageOf } from '../parts.js';
import { clientOf, readStream, saying, serving, shortOf, taskIn } from './clients.test-support.js';

const names = ['pay', 'send'] as const;

type Said = Readonly<Partial<Record<(typeof names)[number], boolean>>>;

/** What a client decides, one message after another, and what has run once all is decided. */
const plays: readonly (readonly [string, readonly Said[], readonly string[]])[] = [
  ['both in one message', [{ pay: true, send: true }], ['pay', 'send']],
  ['the first, then the second', [{ pay: true }, { send: true }], ['pay', 'send']],
  ['the second, then the first', [{ send: true }, { pay: true }], ['pay', 'send']],
  ['one, and denies the other', [{ send: false }, { pay: true }], ['pay']],
  ['both, and denies them', [{ pay: false, send: false }], []],
];

describe('two tool calls that wait for an approval', () => {
  it.each(plays)('are decided in any order: %s', async (_, plan, expected) => {
    const approvals = approvalQueue({ key: new Uint8Array(32) });
    const ran: string[] = [];
    const tools = names.map((name) =>
      requireApproval(
        tool({
          name,
          description: 'Acts.',
          run: () => {
            ran.push(name);
            return 'Done.';
          },
        }),
        approvals.approve,
      ),
    );
    const turn = [...names.map((name) => toolCall(name, {}, name)), finish()];
    const model = scriptedModel(turn, [text('That is all.')]);
    await serving(
      createAgent({ name: 'helper', model, tools }),
      async (served) => {
        const client = await clientOf(served);
        const { task } = await readStream(client.sendMessageStream(saying('Do both.')));
        const { id: taskId, contextId } = task;
        for (const [at, said] of plan.entries()) {
          const stated = await client.getTask({ tenant: '', id: taskId });
          expect(shortOf(stated).state).toBe('input_required');
          const asked = JSON.stringify(stated.status?.message);
          const parts = Object.entries(said).flatMap(([name, approved]) => {
            const toolCallId = new RegExp(`"toolCallId":"([^"]*/${name})"`, 'u').exec(asked)?.[1];
            return saying({ toolCallId, approved }).message?.parts ?? [];
          });
          const message = messageOf('user', parts, { messageId: `d${at}`, taskId, contextId });
          const sent = taskIn(await client.sendMessage({ ...saying(''), message }));
          const isLast = at === plan.length - 1;
          expect(shortOf(sent)).toMatchObject(
            isLast
              ? { state: 'completed', answer: 'That is all.' }
              : // Only the other one is asked about.
                {
                  state: 'input_required',
                  says: expect.not.stringContaining(`'${Object.keys(said)[0]}'`),
                },
          );
        }
        expect(ran.toSorted()).toEqual(expected);
      },
      { approvals },
    );
  });
});
