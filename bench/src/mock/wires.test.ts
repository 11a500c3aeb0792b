import { describe, expect, it } from '@jest/globals';
import { isRecord } from '../is-record.js';
import { answerOf } from './answer.js';
import { chatWire } from './chat-wire.js';
import { messagesWire } from './messages-wire.js';
import { at, textAt } from './paths.js';
import { responsesWire } from './responses-wire.js';

/** The JSON of each frame that has one. */
const eventsOf = (frames: readonly Buffer[]): readonly Readonly<Record<string, unknown>>[] =>
  frames.flatMap((frame) => {
    const text = frame.toString();
    expect(text).toMatch(/^(event: \S+\n)?data: .+\n\n$/);
    const data = text.slice(text.indexOf('data: ') + 6);
    const event: unknown = data === '[DONE]\n\n' ? undefined : JSON.parse(data);
    return isRecord(event) ? [event] : [];
  });

const chatDelta = (event: unknown): unknown => {
  const choices = at(event, 'choices');
  return at(Array.isArray(choices) ? choices[0] : undefined, 'delta');
};

describe.each([
  {
    wire: chatWire,
    name: 'chat completions',
    textOf: (e: unknown) => textAt(chatDelta(e), 'content'),
  },
  { wire: messagesWire, name: 'messages', textOf: (e: unknown) => textAt(at(e, 'delta'), 'text') },
  {
    wire: responsesWire,
    name: 'responses',
    textOf: (e: unknown) => (textAt(e, 'type').endsWith('text.delta') ? textAt(e, 'delta') : ''),
  },
])('frames of $name', ({ wire, textOf }) => {
  it('hold the answer, one delta each', () => {
    const texts = eventsOf(wire.answerFrames(0, 23)).map(textOf).filter(Boolean);
    expect(texts).toHaveLength(23);
    expect(texts.join('')).toBe(answerOf(23));
  });

  it('are as long as those of the vendor', () => {
    const frame = wire.answerFrames(0, 3).find((each) => textOf(eventsOf([each])[0]) === ' brown');
    expect(frame?.length).toBeGreaterThan(110);
    expect(frame?.length).toBeLessThan(260);
  });

  it('ask for the tools of a turn, in pieces', () => {
    const text = Buffer.concat([...wire.toolFrames(3, 2)]).toString();
    for (const id of ['call_3_0', 'call_3_1']) expect(text).toContain(id);
    expect(text).not.toContain('call_3_2');
    const pieces = eventsOf(wire.toolFrames(3, 2)).map((event) => {
      const [call] = [at(chatDelta(event), 'tool_calls')].flat();
      return (
        textAt(at(call, 'function'), 'arguments') ||
        textAt(at(event, 'delta'), 'partial_json') ||
        textAt(event, 'delta')
      );
    });
    expect(pieces.join('')).toBe('{"city":"Oslo","day":0}{"city":"Oslo","day":1}');
    expect(pieces.filter(Boolean)).toHaveLength(8);
  });

  it('are messages of their own in each turn', () => {
    const ids = [wire.toolFrames(0, 1), wire.toolFrames(1, 1), wire.answerFrames(2, 1)].map(
      (frames) => /"id":"(?:chatcmpl|msg|resp)_?-?[^"]*"/.exec(frames.join(''))?.[0],
    );
    expect(new Set(ids).size).toBe(3);
  });
});

it('a delta of chat completions is some 210 bytes', () => {
  const frames = chatWire.answerFrames(0, 10).slice(1, 11);
  for (const { length } of frames) expect(Math.abs(length - 210)).toBeLessThan(15);
});
