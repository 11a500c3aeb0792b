import { createAgent, on, textBlock, tool, toolOutput } from 'millrace';
import {
  finish,
  marbles,
  type ScriptedAnswer,
  scriptedModel,
  text,
  thinking,
  toolCall,
} from 'millrace/testing';
import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, map, toArray } from 'rxjs';
import { finalMarkers } from './final-markers.js';

const ends = tool({
  name: 'ends',
  description: 'Ends the task.',
  run: () => toolOutput({ content: 'The end.', finalAnswer: true }),
});
const look = tool({ name: 'look', description: 'Looks.', run: () => 'seen' });

const written = async (...answers: readonly ScriptedAnswer[]): Promise<string> => {
  const agent = createAgent({ model: scriptedModel(...answers), tools: [ends, look] });
  const event$ = agent.stream$('?', { limits: { parseBackoffMs: 0 } });
  return (await lastValueFrom(event$.pipe(finalMarkers(), toArray()))).join('');
};

describe('P2: finalMarkers', () => {
  it('writes marks around the answer, while it arrives', () => {
    marbles(({ model, scheduler, expectObservable }) => {
      const agent = createAgent({ model: model('5ms h 5ms t 5ms t 5ms (f|)') });
      const text$ = agent.stream$('?', { scheduler }).pipe(finalMarkers());
      expectObservable(text$).toBe('5ms h 5ms (bt) 2ms t 5ms (e|)', {
        h: 'h',
        b: '<__final_answer__>',
        t: 't',
        e: '</__final_answer__>',
      });
    });
  });

  it('leaves thoughts outside, and arguments of tools out', async () => {
    expect(
      await written([thinking('First look. '), toolCall('look')], [thinking('So. '), text('Yes.')]),
    ).toBe('First look. \n\nSo. <__final_answer__>Yes.</__final_answer__>');
  });

  it('has the answer in the last pair, no matter what came before it', async () => {
    expect(
      await written(
        [text('Let me see.'), toolCall('look')],
        [text('Acton'), { type: 'malformed', feedback: 'no' }],
        [text('Yes.')],
      ),
    ).toBe(
      '<__final_answer__>Let me see.</__final_answer__><__final_answer__>Acton</__final_answer__><__final_answer__>Yes.</__final_answer__>',
    );
  });

  it('writes an answer that did not stream as well: that of a tool', async () => {
    expect(await written([toolCall('ends')])).toBe('<__final_answer__>The end.</__final_answer__>');
  });

  it('I11: has an answer that was edited after the one that streamed', async () => {
    const edited = on(
      'postCall',
      map((event) => ({ ...event, reply: { ...event.reply, content: [textBlock('Yes!')] } })),
    );
    const agent = createAgent({ model: scriptedModel([text('Yes.')]), use: [edited] });
    const pieces = await lastValueFrom(agent.stream$('?').pipe(finalMarkers(), toArray()));
    expect(pieces.join('')).toBe(
      '<__final_answer__>Yes.</__final_answer__><__final_answer__>Yes!</__final_answer__>',
    );
  });

  it('closes its marks if a thought comes in between, and at an error', async () => {
    expect(await written([text('a'), thinking('b'), text('c'), finish()])).toBe(
      '<__final_answer__>a</__final_answer__>b<__final_answer__>c</__final_answer__>',
    );
  });

  it('refuses options that it does not have', () => {
    expect(() => finalMarkers({ all: true } as never)).toThrow(/finalMarkers\(\) has no option/);
  });
});
