import { describe, expect, it, jest } from '@jest/globals';
import type { Message } from 'millrace';
import fc from 'fast-check';
import { assistant, frozen, results, user } from './conversation.test-support.js';
import { joinItems, type JsonItems, toJsonItems } from './json-items.js';
import { pagedSerializer } from './paged-serializer.js';
import type { Serializer, WireNames } from '@millrace/wire';

const naming: WireNames = { toolName: (name) => name, toolId: (id) => id };

/** Says something between a tool and a user. */
const join = jest.fn((passages: readonly JsonItems[]) =>
  joinItems(passages, (last, first) => (last === 'tool' && first === 'user' ? '"bridge"' : '')),
);

/** Writes messages in one go, those of nothing not at all. */
const write = jest.fn<Serializer<JsonItems>>((messages) =>
  join(
    messages
      .filter(({ content }) => content.length > 0)
      .map((message) => toJsonItems(message.role, message.content)),
  ),
);

const message: fc.Arbitrary<() => Message> = fc.constantFrom(
  () => user('Hi'),
  () => assistant('Hello.'),
  () => assistant(),
  () => results(['c1', 'rain']),
);

const conversation = (length: number): readonly Message[] =>
  frozen(Array.from({ length }, (_, index) => user(`${index}`)));

describe('inPages', () => {
  it('X16: writes the same as in one go', () => {
    const long = fc.array(message, { maxLength: 80 });
    fc.assert(
      fc.property(long, fc.array(fc.nat({ max: 80 }), { maxLength: 5 }), (makers, lengths) => {
        const messages = frozen(makers.map((make) => make()));
        const writeAll = pagedSerializer(write, join);
        for (const length of [...lengths, 80]) {
          const asked = messages.slice(0, length);
          expect(writeAll(asked, naming)).toEqual(write(asked, naming));
        }
      }),
    );
  });

  it('X6: writes a message once, and joins no more than pages if nothing is new', () => {
    const writeAll = pagedSerializer(write, join);
    const messages = conversation(100);
    write.mockClear();
    writeAll(messages.slice(0, 90), naming);
    writeAll(messages, naming);
    expect(write.mock.calls.map(([asked]) => asked)).toEqual(messages.map((it) => [it]));
    join.mockClear();
    writeAll(messages, naming);
    expect(write).toHaveBeenCalledTimes(100);
    // The four behind the last page, and six pages with these.
    expect(join.mock.calls.map(([passages]) => passages.length)).toEqual([4, 7]);
  });
});
