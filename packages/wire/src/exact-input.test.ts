import { describe, expect, it } from '@jest/globals';
import { decodeSignature, encodeSignature } from './encoded-signature.js';
import { stringifyObject } from './raw-json.js';
import { toolNames } from './tool-names.js';
import { chunksOf, doneEvent, exchangeWith, finishEvent, respond } from './wire.test-support.js';

const big = '9007199254740993';
const call = `{"type":"toolCall","name":"t","input":{"list":[${big}],"n":1}}`;
const exact = { type: 'toolCall', name: 't', json: `{"list":[${big}],"n":1}` };

describe('X32: arguments that a vendor sends as a value', () => {
  it('are JSON in a chunk, if a number cannot hold one of their integers', async () => {
    const streamed = await chunksOf(
      exchangeWith(respond([`data: ${call}\n\n`, finishEvent, doneEvent])),
    );
    expect(streamed[0]).toEqual(exact);
    const whole = `{"chunks":[${call},{"type":"finish","finish":"stop"}]}`;
    const init = { headers: { 'content-type': 'application/json' } };
    expect((await chunksOf(exchangeWith(respond([whole], init))))[0]).toEqual(exact);
  });

  it('are the value otherwise, for any other field of the event', async () => {
    const plain = `{"type":"toolCall","name":"t","input":{"id":"${big}"},"seen":${big}}`;
    const [chunk] = await chunksOf(
      exchangeWith(respond([`data: ${plain}\n\n`, finishEvent, doneEvent])),
    );
    expect(chunk).toMatchObject({ input: { id: big } });
  });

  it('go back to a vendor as they came', () => {
    const signature = encodeSignature('V', 'block', { id: BigInt(big) });
    expect(signature).toContain(`"id":${big}`);
    expect(stringifyObject({ block: decodeSignature('V', 'block', signature) })).toBe(
      `{"block":{"id":${big}}}`,
    );
  });
});

describe('X11: a namespace before the name of a tool', () => {
  it('is dropped before a name that the vendor was given instead', () => {
    const { toWire, fromWire } = toolNames(['a b', 'plain']);
    expect(fromWire(`functions.${toWire('a b')}`)).toBe('a b');
    expect(fromWire(`${toWire('a b')}<|channel|>commentary`)).toBe('a b');
    // The core reports these.
    expect(fromWire('functions.plain')).toBe('functions.plain');
    expect(fromWire('functions.other')).toBe('functions.other');
  });
});
