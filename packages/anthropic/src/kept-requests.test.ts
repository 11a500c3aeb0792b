import { describe, expect, it } from '@jest/globals';
import type { Message, ModelRequest } from '@millrace/core';
import { parsedJson } from '@millrace/core/adapter';
import { toolNames } from '@millrace/wire';
import fc from 'fast-check';
import { frozen, modelRequest } from './conversations.test-support.js';
import { messagesRequest } from './messages-request.js';
import { toWireId } from './tool-use-id.js';

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
    return parsedJson(write(request, { toolName, toolId: toWireId }));
  } catch (error) {
    return String(error);
  }
};

const text = (it: string) => ({ type: 'text', text: it }) as const;

describe('a request', () => {
  it('X16: is the same, whatever was sent before it', () => {
    const part = fc.record({
      from: fc.nat({ max: 3 }),
      until: fc.nat({ max: 12 }),
      isCopied: fc.boolean(),
    });
    fc.assert(
      fc.property(
        modelRequest,
        fc.array(fc.tuple(part, modelRequest), { maxLength: 6 }),
        ({ messages }, asks) => {
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
    let reads = 0;
    const watched = ({ content, ...message }: Message): Message =>
      Object.freeze(
        Object.defineProperty({ ...message }, 'content', {
          enumerable: true,
          get: () => {
            reads += 1;
            return content;
          },
        }) as Message,
      );
    const turn = (n: number): readonly Message[] =>
      frozen<readonly Message[]>([
        {
          id: `a${n}`,
          role: 'assistant',
          content: [text('I look.'), { type: 'tool_use', id: `c${n}`, name: 'weather', input: {} }],
        },
        {
          id: `t${n}`,
          role: 'tool',
          content: [{ type: 'tool_result', toolUseId: `c${n}`, content: [], isError: false }],
        },
      ]).map(watched);
    const write = begin();
    let messages: readonly Message[] = [
      watched(frozen({ id: 'u', role: 'user', content: [text('Hi')] })),
    ];
    asked(write, { messages });
    const perTurn = Array.from({ length: 20 }, (_, n) => {
      const before = reads;
      messages = [...messages, ...turn(n)];
      asked(write, { messages });
      return reads - before;
    });
    expect(new Set(perTurn).size).toBe(1);
    const before = reads;
    asked(write, { messages });
    expect(reads).toBe(before);
  });
});
