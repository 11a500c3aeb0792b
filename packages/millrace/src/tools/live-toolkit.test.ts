import { describe, expect, it } from '@jest/globals';
import { map } from 'rxjs';
import {
  createAgent,
  inProcessMemory,
  type LiveToolkit,
  on,
  type Tool,
  tool,
  toolGroup,
} from '../index.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';
import { sessions } from '../layers/sessions/index.js';

const named = (name: string, output = `${name} ran`): Tool =>
  tool({ name, description: `Does ${name}.`, run: () => output });

const web = toolGroup({
  name: 'web',
  description: 'For looking things up.',
  tools: [named('search'), named('fetch')],
});
const shell = toolGroup({
  name: 'shell',
  description: 'For the program alone.',
  tools: [named('exec')],
  managed: false,
});

const toolsIn = ({ requests }: ReturnType<typeof scriptedModel>) =>
  requests.map(({ tools = [] }) => tools.map(({ name }) => name).join());

describe('T10: groups of tools', () => {
  it('are shown when they are active; the model may activate them by a tool', async () => {
    const model = scriptedModel(
      [toolCall('manage_tools', { activate: ['web'] })],
      [toolCall('search')],
      [toolCall('manage_tools', { deactivate: ['web'] })],
      [toolCall('search', { again: true })],
      [text('done')],
    );
    const { toolCalls } = await createAgent({ model, tools: [named('a'), web, shell] }).call('?');
    expect(toolsIn(model)).toEqual([
      'a,manage_tools',
      'a,search,fetch,manage_tools',
      'a,search,fetch,manage_tools',
      'a,manage_tools',
      'a,manage_tools',
    ]);
    expect(toolCalls.map(({ output }) => output)).toEqual([
      'Active groups: web.',
      'search ran',
      'Active groups: none.',
      "No tool is named 'search'. The tools are: a, manage_tools.",
    ]);
  });

  it('T3: are managed while no other tool of the batch runs', async () => {
    const { toolkit } = sessions(createAgent({ model: scriptedModel(), tools: [web] })).open('s');
    expect(toolkit.names).toEqual(['manage_tools']);
    const order: string[] = [];
    const slow = tool({
      name: 'slow',
      description: 'Takes a while.',
      run: async () => {
        await Promise.resolve();
        order.push('slow');
      },
    });
    const model = scriptedModel(
      [
        toolCall('slow'),
        toolCall('manage_tools', { activate: ['web'] }),
        toolCall('slow', { n: 2 }),
      ],
      [text('done')],
    );
    const watched = on(
      'postActing',
      map((event) => {
        if (event.toolCall.name === 'manage_tools') order.push('managed');
        return event;
      }),
    );
    await createAgent({ model, tools: [web, slow], use: [watched] }).call('?');
    expect(order).toEqual(['slow', 'managed', 'slow']);
  });

  it('that are not managed are for the program alone', async () => {
    const model = scriptedModel(
      [toolCall('manage_tools', { activate: ['shell'] })],
      [text('done')],
    );
    const agent = createAgent({ model, tools: [web, shell] });
    const session = sessions(agent).open('s');
    expect((await session.call('?')).toolCalls[0]?.output).toMatch(
      /activate: must be a list of these names: web$/,
    );
    expect(model.requests[0]?.tools?.[0]?.description).not.toContain('shell');
    session.toolkit.activate('shell');
    expect(session.toolkit.names).toEqual(['exec', 'manage_tools']);
  });

  it('are the state of a session, and of no other session, call or agent', async () => {
    const model = scriptedModel([toolCall('manage_tools', { activate: ['web'] })], [text('done')]);
    const memory = inProcessMemory();
    const agent = createAgent({ model, tools: [web] });
    const [first, second] = [
      sessions(agent, { memory }).open('1'),
      sessions(agent, { memory }).open('2'),
    ];
    await first.call('?');
    expect(first.toolkit.names).toContain('search');
    expect(sessions(agent, { memory }).open('1').toolkit.names).toContain('search');
    expect(second.toolkit.names).toEqual(['manage_tools']);
    expect(
      sessions(createAgent({ model, tools: [web] }), { memory }).open('1').toolkit.names,
    ).toEqual(['manage_tools']);
    const turns = [[toolCall('manage_tools', { activate: ['web'] })], [text('done')]];
    const bare = scriptedModel(...turns, ...turns);
    const plain = createAgent({ model: bare, tools: [web] });
    await plain.call('?');
    await plain.call('?');
    expect(toolsIn(bare)[2]).toBe('manage_tools');
  });
});

describe('T10: the toolkit of a session', () => {
  const agent = () =>
    createAgent({ model: scriptedModel([text('done')]), tools: [named('a'), web] });

  it('is changed at run time, and the next request of a running call has it', async () => {
    const model = scriptedModel([toolCall('a')], [toolCall('b')], [text('done')]);
    const session = sessions(
      createAgent({
        model,
        tools: [named('a')],
        use: [
          on(
            'postActing',
            map((event) => {
              if (event.iteration > 1) return event;
              session.toolkit.add(named('b'));
              session.toolkit.remove('a');
              return event;
            }),
          ),
        ],
      }),
    ).open('s');
    const { toolCalls } = await session.call('?');
    expect(toolsIn(model)).toEqual(['a', 'b', 'b']);
    expect(toolCalls.map(({ output }) => output)).toEqual(['a ran', 'b ran']);
  });

  it('I14: adds no second tool of a name, also if the first one is in a group that rests', () => {
    const { toolkit } = sessions(agent()).open('s');
    for (const name of ['a', 'search', 'manage_tools']) {
      expect(() => toolkit.add(named('fresh'), named(name))).toThrow(
        `Two tools are named '${name}'. Rename one of them, or drop it.`,
      );
    }
    expect(() => toolkit.add(web)).toThrow(/Two tools are named 'search'/);
    expect(() => toolkit.add(toolGroup({ ...web, tools: [] }))).toThrow(
      /Two groups of tools are named 'web'/,
    );
    // Nothing of it has been done.
    expect(toolkit.names).toEqual(['a', 'manage_tools']);
  });

  it('I14: replaces a tool if that is allowed', async () => {
    const model = scriptedModel([toolCall('a'), toolCall('search')], [text('done')]);
    const session = sessions(createAgent({ model, tools: [named('a'), web] })).open('s');
    session.toolkit.replace(named('a', 'another'), named('search', 'another search'));
    session.toolkit.activate('web');
    const { toolCalls } = await session.call('?');
    expect(toolCalls.map(({ output }) => output)).toEqual(['another', 'another search']);
  });

  it('takes tools and groups away', () => {
    const { toolkit } = sessions(agent()).open('s');
    toolkit.activate('web');
    toolkit.remove('search');
    expect(toolkit.names).toEqual(['a', 'fetch', 'manage_tools']);
    toolkit.remove('web');
    expect(toolkit.names).toEqual(['a']);
    expect(toolkit.groups).toEqual([]);
  });

  it.each<[string, (kit: LiveToolkit) => void]>([
    [
      "There is no tool or group named 'b'. There are: a, web, search, fetch.",
      (kit) => kit.remove('b'),
    ],
    ["There is no tool named 'b'.", (kit) => kit.replace(named('b'))],
    ["There is no group of tools named 'a'. There are: web.", (kit) => kit.activate('a')],
    ["There is no group of tools named '__proto__'.", (kit) => kit.deactivate('__proto__')],
  ])('says what there is: %s', (message, change) => {
    expect(() => change(sessions(agent()).open('s').toolkit)).toThrow(message);
  });

  it('is not used by a call that brings its own tools', async () => {
    const model = scriptedModel([text('done')]);
    const session = sessions(createAgent({ model, tools: [named('a')] })).open('s');
    session.toolkit.add(named('b'));
    await session.call('?', { tools: [named('c')] });
    expect(toolsIn(model)).toEqual(['c']);
  });
});
