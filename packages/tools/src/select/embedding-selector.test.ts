import { describe, expect, it, jest } from '@jest/globals';
import { createAgent, type Embedder, selectTools, tool } from 'millrace';
import { record, scriptedModel, text } from 'millrace/testing';
import { of } from 'rxjs';
import { embeddingSelector } from './embedding-selector.js';

const tools = ['weather', 'mail', 'calendar', 'files'].map((name) =>
  tool({ name, description: `Works with ${name}.`, run: () => `${name} ran` }),
);

/** Which tools the model was shown, and what was warned of. */
const shown = async (selection: Parameters<typeof selectTools>[0]) => {
  const model = scriptedModel([text('done')]);
  const agent = createAgent({ model, tools, use: [selectTools(selection)] });
  const events = await record(agent.stream$('Will it rain?'));
  return {
    names: (model.requests[0]?.tools ?? []).map(({ name }) => name).join(),
    warnings: events.flatMap((event) => (event.type === 'warning' ? [event.message] : [])),
  };
};

describe('T11: a selection by likeness', () => {
  const vectors: Record<string, readonly number[]> = {
    'Will it rain?': [1, 0],
    'weather: Works with weather.': [2, 0],
    'mail: Works with mail.': [0, 1],
    'calendar: Works with calendar.': [1, 1],
    'files: Works with files.': [0.2, 1],
  };
  const embedder = (): jest.Mocked<Embedder> => ({
    embed$: jest.fn((texts) => of(texts.map((it) => vectors[it] ?? []))),
  });

  it('shows what is as alike as the threshold says, the most alike first', async () => {
    expect((await shown({ select: embeddingSelector(embedder()) })).names).toBe('weather,calendar');
    const select = embeddingSelector(embedder(), { threshold: 0.1 });
    expect((await shown({ select, maxTools: 2 })).names).toBe('weather,calendar');
    expect((await shown({ select: embeddingSelector(embedder(), { threshold: 0.1 }) })).names).toBe(
      'weather,calendar,files',
    );
  });

  it('makes the vector of a tool once', async () => {
    const counted = embedder();
    const select = embeddingSelector(counted);
    await shown({ select });
    await shown({ select });
    expect(counted.embed$.mock.calls.map(([texts]) => texts.length)).toEqual([1, 4, 1]);
  });

  it('shows all if the embedder fails', async () => {
    const { warnings } = await shown({ select: embeddingSelector({ embed$: () => of([[1]]) }) });
    expect(warnings[0]).toMatch(/number of vectors differs from the number of texts/);
  });
});
