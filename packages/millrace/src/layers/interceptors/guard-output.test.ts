import { describe, expect, it } from '@jest/globals';
import { map } from 'rxjs';
import { createAgent } from '../../agent.js';
import { textOf } from '../../values/message.js';
import { marbles, record, scriptedModel, text } from '../../testing/index.js';
import { guardOutput } from './guard-output.js';

describe('guardOutput', () => {
  it('H7: stops the answer before a forbidden word is shown, and cancels the request in the middle of it', () => {
    marbles(({ model, expectObservable, expectSubscriptions, scheduler }) => {
      const talking = model('-a-b-c--(df|)', {
        a: text('The code is '),
        b: text('swo'),
        c: text('rdfish'),
        d: text('.'),
      });
      const agent = createAgent({ model: talking, use: [guardOutput('swordfish')] });
      const reply$ = agent
        .call$('?', { scheduler })
        .pipe(map((reply) => [reply.reason, textOf(reply)]));
      expectObservable(reply$).toBe('-----(r|)', { r: ['stopped', 'The code is '] });
      expectSubscriptions(talking.subscriptions[0] ?? []).toBe('^----!');
    });
  });

  it('H7: shows nothing of what it stops', async () => {
    const agent = createAgent({
      model: scriptedModel(Array.from('It is a swordfish.', (it) => text(it))),
      use: [guardOutput(/sword\w+/)],
    });
    const events = await record(agent.stream$('?'));
    const shown = events.flatMap((event) => (event.type === 'reasoningChunk' ? [event.delta] : []));
    expect(shown.join('')).not.toContain('sword');
  });

  it.each(['url', 'title', 'citedText'] as const)(
    'H7: stops the answer before a citation whose %s has a forbidden word',
    async (field) => {
      const cites = { type: 'citation', citation: { [field]: 'A swordfish.' } } as const;
      const model = scriptedModel([text('Hi'), cites, text(' there')]);
      const agent = createAgent({ model, use: [guardOutput('swordfish')] });
      const events = await record(agent.stream$('?'));
      expect(JSON.stringify(events)).not.toContain('swordfish');
      expect(events.at(-1)).toMatchObject({
        reply: { reason: 'stopped', content: [text('Hi')] },
      });
    },
  );

  it('keeps other citations, and what a vendor adds to text', async () => {
    const citation = { title: 'Fish' };
    const vendorData = { vendor: 'A', data: { signature: 's' } };
    const signed = { type: 'text', text: '!', vendorData } as const;
    const model = scriptedModel([text('Hi'), { type: 'citation', citation }, signed]);
    const reply = await createAgent({ model, use: [guardOutput('swordfish')] }).call('?');
    expect(reply.content).toEqual([{ ...text('Hi!'), citations: [citation], vendorData }]);
  });

  it('L7: with feedback the model is asked again', async () => {
    const model = scriptedModel([text('swordfish')], [text('I cannot say.')]);
    const reply = await createAgent({
      model,
      use: [guardOutput('swordfish', { feedback: 'Never say the code.' })],
    }).call('?');
    expect([textOf(reply), reply.iterations]).toEqual(['I cannot say.', 2]);
    expect(model.requests[1]?.messages.map(textOf)).toEqual(['?', 'Never say the code.']);
  });

  it('refuses what would be useless to the model, and what would stop any answer', () => {
    expect(() => guardOutput('a', { feedback: ' ' })).toThrow(
      /'feedback' must be a non-empty message/,
    );
    expect(() => guardOutput(['a', /x*/])).toThrow('/x*/ matches the empty string');
    expect(() => guardOutput(/(?=secret)/)).not.toThrow();
  });

  it('lets everything else through, in the end', async () => {
    const agent = createAgent({
      model: scriptedModel(Array.from('A sword, a fish.', (it) => text(it))),
      use: [guardOutput('swordfish')],
    });
    expect(textOf(await agent.call('?'))).toBe('A sword, a fish.');
  });
});
