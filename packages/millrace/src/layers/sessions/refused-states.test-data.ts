import { isObjectOrList } from '../../values/json.js';

/** The name of a state, the sample it is made of, the changed fields by their paths (`absent` removes one), and the error. */
type Refused = readonly [
  name: string,
  sample: string,
  changes: Readonly<Record<string, unknown>>,
  error: string,
];

export const absent = Symbol('absent');

const first = 'messages.0';
const block = `${first}.content.0`;
const toolCall = 'messages.1.content.1';
const noUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
const lastCall = { callId: 'c', usageBefore: noUsage, hasEnded: true };
const earlier = { callId: 'a', usage: noUsage, hasEnded: true };
const add = { type: 'tool_call', id: 'one', name: 'add', input: { a: 1, b: 2 } };
const approval = (id: string) => ({ callId: 'call-0', toolCall: { ...add, id, name: 'pay' } });
const polluting: unknown = JSON.parse('{ "__proto__": { "polluted": 1 } }');
const deep = Array.from({ length: 101 }).reduce<unknown>((inner) => ({ a: inner }), 1);

export const refusedStates: readonly Refused[] = [
  ['null', '', { '': null }, 'it must be an object, not null'],
  ['a list', '', { '': [] }, 'it must be an object, not a list'],
  ['a string', '', { '': '{"version":1}' }, 'it must be an object, not a string. Parse it'],
  ['a cut string', '', { '': '{"version":1,"mess' }, 'it must be an object, not a string'],
  [
    'something foreign',
    '',
    { '': { messages: [{ role: 'user', content: 'Hi' }] } },
    "it is not a session state: it has no 'version'. Use that of saveState()",
  ],

  [
    'an unknown field',
    'tools',
    { notes: {} },
    "'notes' is unknown. Known fields: version, messages",
  ],
  ['a prototype', 'tools', { ['__proto__']: { polluted: 1 } }, "'__proto__' is unknown"],
  ['an inherited name', 'tools', { constructor: 1 }, "'constructor' is unknown"],
  ['no messages', 'empty', { messages: absent }, "'messages' is missing"],
  ['no groups', 'tools', { groups: absent }, "'groups' is missing"],
  ['no approvals', 'tools', { approvals: absent }, "'approvals' is missing"],
  ['no usage', 'tools', { usage: absent }, "'usage' is missing"],
  ['no flag', 'tools', { interrupted: absent }, "'interrupted' is missing"],
  [
    'a flag as text',
    'tools',
    { interrupted: 'no' },
    "'interrupted' must be true or false, not a string",
  ],

  ['no list', 'tools', { messages: { 0: {} } }, "'messages' must be a list, not an object"],
  ['no message', 'tools', { [first]: null }, "'messages[0]' is not a message: its 'role' must be"],
  [
    'a role',
    'tools',
    { [`${first}.role`]: 'system' },
    "'messages[0]' is not a message: its 'role'",
  ],
  ['no id', 'tools', { [`${first}.id`]: absent }, "'messages[0].id' is missing"],
  ['an empty id', 'tools', { [`${first}.id`]: '' }, "'messages[0].id' is empty"],
  [
    'a number as id',
    'tools',
    { [`${first}.id`]: 7 },
    "'messages[0].id' must be a string, not a number",
  ],
  [
    'a long id',
    'tools',
    { [`${first}.id`]: 'x'.repeat(10_001) },
    "'messages[0].id' has 10001 characters: the limit is 10000",
  ],
  [
    'an id twice',
    'tools',
    { 'messages.3.id': 'call-0/input/0' },
    "'messages' holds the id 'call-0/input/0' twice",
  ],
  [
    'more in a message',
    'tools',
    { [`${first}.createdAt`]: 1 },
    "'messages[0].createdAt' is unknown. Known fields: id, role, content, name",
  ],
  [
    'a prototype in a message',
    'tools',
    { [`${first}.__proto__`]: { role: 'tool' } },
    "'messages[0].__proto__' is unknown",
  ],

  [
    'text as content',
    'tools',
    { [`${first}.content`]: 'Hi' },
    "'messages[0].content' must be a list, not a string",
  ],
  [
    'more in a block',
    'tools',
    { [`${block}.extra`]: true },
    "'messages[0].content[0].extra' is unknown",
  ],
  [
    'an unknown block',
    'tools',
    { [block]: { type: 'video' } },
    "'messages[0].content[0]' is not a block of text, image, audio or file",
  ],
  [
    'a path as media',
    'tools',
    { [block]: { type: 'image', source: { kind: 'url', url: '../../etc/passwd' } } },
    "'messages[0].content[0]' is not a block of text, image, audio or file",
  ],
  [
    'a tool call of a user',
    'tools',
    { [block]: add },
    "'messages[0].content[0]' is not a block of text",
  ],
  [
    'a list as input',
    'tools',
    { [`${toolCall}.input`]: [1] },
    "'messages[1].content[1].input' must be an object",
  ],
  [
    'deep input',
    'tools',
    { [`${toolCall}.input`]: deep },
    "'messages[1].content[1].input' is nested more than 100 levels deep",
  ],
  [
    'a prototype in input',
    'tools',
    { [`${toolCall}.input`]: { a: polluting } },
    "'messages[1].content[1].input' has a key '__proto__'",
  ],
  [
    'a tool call twice',
    'tools',
    { 'messages.1.content.2.id': 'one' },
    "'messages[1].content' holds the id 'one' twice",
  ],
  [
    'a prototype in details',
    'tools',
    { 'messages.2.content.0.details': [polluting] },
    "'messages[2].content[0].details' has a key '__proto__'",
  ],
  [
    'a flag for what is suspended',
    'suspended',
    { 'messages.2.content.0.suspended': true },
    "'messages[2].content[0].suspended' must be an object, not a boolean",
  ],

  ['a list of groups', 'tools', { groups: ['web'] }, "'groups' must be an object, not a list"],
  [
    'a group as text',
    'tools',
    { 'groups.web': 'yes' },
    "'groups.web' must be true or false, not a string",
  ],
  ['a group __proto__', 'tools', { groups: polluting }, "'groups' has a key '__proto__'"],

  ['more in an approval', 'approvals', { 'approvals.0.by': 'me' }, "'approvals[0].by' is unknown"],
  [
    'an approval of no tool call',
    'approvals',
    { 'approvals.0.toolCall.type': 'text' },
    "'approvals[0].toolCall' must be of the type 'tool_call'",
  ],
  [
    'an approval twice',
    'approvals',
    { approvals: ['one', 'two', 'one'].map(approval) },
    "'approvals' holds the id",
  ],

  [
    'negative usage',
    'tools',
    { 'usage.inputTokens': -1 },
    "'usage.inputTokens' must be a non-negative number, not -1",
  ],
  [
    'usage as text',
    'tools',
    { 'usage.outputTokens': '7' },
    "'usage.outputTokens' must be a non-negative number, not a string",
  ],
  ['text as last call', 'empty', { lastCall: 'c' }, "'lastCall' must be an object, not a string"],
  [
    'a last call without id',
    'empty',
    { lastCall: { usageBefore: noUsage, hasEnded: true } },
    "'lastCall.callId' is missing",
  ],
  [
    'more in a last call',
    'empty',
    { lastCall: { ...lastCall, by: 'Ann' } },
    "'lastCall.by' is unknown. Known fields: callId, usageBefore, hasEnded",
  ],
  [
    'negative usage before a call',
    'empty',
    { lastCall: { ...lastCall, usageBefore: { ...noUsage, inputTokens: -1 } } },
    "'lastCall.usageBefore.inputTokens' must be a non-negative number, not -1",
  ],
  [
    'an earlier call twice',
    'empty',
    { earlierCalls: [earlier, earlier] },
    "'earlierCalls' holds the id 'a' twice",
  ],
];

/** States with tool calls that have not exactly one result each, as the positions of messages of the sample `tools`. */
export const unpairedStates: readonly (readonly [name: string, kept: readonly number[]])[] = [
  ['a tool call without its result', [0, 1, 3, 4, 5]],
  ['a result without its tool call', [0, 2, 3, 4, 5]],
  ['a conversation that is cut after a tool call', [0, 1]],
];

/** A copy of a value in which fields are changed. */
export const changed = (value: unknown, changes: Readonly<Record<string, unknown>>): unknown =>
  Object.entries(changes).reduce<unknown>((whole, [path, field]) => {
    if (path === '') return field;
    const keys = path.split('.');
    const key = keys.pop() ?? '';
    const owner = keys.reduce<unknown>(
      (inner, at) => (isObjectOrList(inner) ? Reflect.get(inner, at) : undefined),
      whole,
    );
    if (!isObjectOrList(owner)) throw new Error(`There is no ${path}.`);
    const own = { value: field, enumerable: true, configurable: true, writable: true };
    if (field === absent) Reflect.deleteProperty(owner, key);
    else Object.defineProperty(owner, key, own);
    return whole;
  }, structuredClone(value));
