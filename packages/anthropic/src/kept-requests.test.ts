import { describe, expect, it, jest } from '@jest/globals';
import type { Message, ModelRequest } from 'millrace';
import { parsedJson } from 'millrace/values';
import { toolNames, toWireId } from '@millrace/wire';
import fc from 'fast-check';
import { conversation, frozen, modelRequest } from './conversations.test-support.js';
import { messagesRequest } from './messages-request.js';

type Write = ReturnType<typeof messagesRequest>;

/** Makes what has written nothing yet. */
const begin = (): Write =>
  messagesRequest({
    model: 'claude-sonnet-4-5',
    thinking: { budgetTokens: 1_024 },
    cache: '5m',
    builtInTools: [{ type: 'web_search_20260318', name: 'web_search' }],
  });

/** The body of a request, or why there is none. */
const asked = (write: Write, request: ModelRequest): unknown => {
  const names = toolNames(
    (request.tools ?? []).map(({ name }) => name),
    ['web_search', 'weather'],
  );
  const toolName = (name: string): string => names.toWire(name);
  try {
    return parsedJson(write(request, { toolName, toolId: toWireId }, 0));
  } catch (error) {
    return String(error);
  }
};

const text = (it: string) => ({ type: 'text', text: it }) as const;

describe('a request', () => {
  it('X16: is the same, no matter what was sent before it', () => {
    const part = fc.record({
      from: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat({ max: 3 })),
      until: fc.nat({ max: 80 }),
      isCopied: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(conversation, { maxLength: 8 }).map((it) => it.flat()),
        fc.array(fc.tuple(part, modelRequest), { maxLength: 6 }),
        (messages, asks) => {
          frozen(messages);
          const write = begin();
          for (const [{ from, until, isCopied }, options] of asks) {
            const sent = messages.slice(from, until);
            const request = { ...options, messages: isCopied ? structuredClone(sent) : sent };
            expect(asked(write, request)).toEqual(asked(begin(), request));
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it('X6: does not read again what was sent before it', () => {
    const reads: number[] = [];
    const watched = ({ content, ...message }: Message): Message => {
      const place = reads.push(0) - 1;
      const get = () => {
        reads[place] = (reads[place] ?? 0) + 1;
        return content;
      };
      const watching = Object.defineProperty({ ...message }, 'content', { enumerable: true, get });
      return Object.freeze(watching as Message);
    };
    const turn = (n: number): readonly Message[] =>
      frozen<readonly Message[]>([
        {
          id: `a${n}`,
          role: 'assistant',
          content: [
            text('I look.'),
            { type: 'tool_call', id: `c${n}`, name: 'weather', input: {} },
          ],
        },
        {
          id: `t${n}`,
          role: 'tool',
          content: [{ type: 'tool_result', toolCallId: `c${n}`, content: [], isError: false }],
        },
      ]).map(watched);
    const write = begin();
    const messages: Message[] = [watched(frozen({ id: 'u', role: 'user', content: [text('Hi')] }))];
    const readsAfter = (turns: number): readonly number[] => {
      for (let n = 0; n < turns; n += 1) {
        messages.push(...turn(n));
        asked(write, { messages });
      }
      return [...reads];
    };
    const before = readsAfter(40);
    // All but the page that has begun, which is read once more when it is full.
    expect(readsAfter(40).slice(0, 64)).toEqual(before.slice(0, 64));
    const each = readsAfter(0);
    const toolName = jest.fn((name: string) => name);
    write({ messages }, { toolName, toolId: toWireId }, 0);
    expect(readsAfter(0)).toEqual(each);
    // Once for each of ten pages, and for where it ends; and for each message behind them.
    expect(toolName.mock.calls.length).toBeLessThan(40);
  });
});
