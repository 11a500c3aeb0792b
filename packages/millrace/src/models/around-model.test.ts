import { describe, expect, it } from '@jest/globals';
import { createAgent, type Model } from '../index.js';
import { aroundModel } from '../index.js';
import { scriptedModel, text } from '../testing/index.js';

describe('aroundModel', () => {
  it('X11: changes what is asked, and keeps what the model says of itself', async () => {
    const inner = scriptedModel([text('Well.')]);
    const model: Model = { ...inner, name: 'plain', unsupported: ['outputSchema'] };
    const polite = aroundModel(model, (request, context) =>
      inner.stream$({ ...request, system: 'Be polite.' }, context),
    );
    expect(polite).toMatchObject({ name: 'plain', unsupported: ['outputSchema'] });
    expect((await createAgent({ model: polite }).call('Hello')).text).toBe('Well.');
    expect(inner.requests[0]?.system).toBe('Be polite.');
    expect(aroundModel(model, inner.stream$, { unsupported: [] }).unsupported).toEqual([]);
  });
});
