import { describe, expect, it } from '@jest/globals';
import { createAgent, type Layer, selectTools, tool, toolGroup } from '../index.js';
import { scriptedModel, text } from '../testing/index.js';
import { withOwnTools } from './select-tools.js';

const named = (name: string) => tool({ name, description: `Does ${name}.`, run: () => name });
const own = [
  named('own'),
  toolGroup({
    name: 'group',
    description: 'More.',
    tools: [named('inner')],
    active: true,
    managed: false,
  }),
];
const shownWith = async (...use: readonly Layer[]) => {
  const model = scriptedModel([text('Hi.')]);
  const options = { model, tools: [named('a'), named('b')], use };
  await createAgent(withOwnTools(options, own)).call('?');
  return model.requests[0]?.tools?.map(({ name }) => name);
};

describe('tools that an agent always has', () => {
  it('T11: stand after the others', async () => {
    expect(await shownWith()).toEqual(['a', 'b', 'own', 'inner']);
  });

  it('T11: are shown no matter what a selection picks, beside what it has pinned itself', async () => {
    const selection = selectTools({ select: () => ['a'], pinned: ['b'], maxTools: 4 });
    expect(await shownWith(selection)).toEqual(['a', 'b', 'own', 'inner']);
    expect(await shownWith(selectTools({ maxTools: 1 }))).toEqual(['own', 'inner']);
  });
});
