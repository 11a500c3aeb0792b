import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { type Agent, createAgent, tool } from 'millrace';
import { type Journal, journal } from 'millrace/journal';
import { sessions } from 'millrace/sessions';
import { type ScriptedModel, scriptedModel, text, toolCall } from 'millrace/testing';
import { isRecord, parsedJson } from 'millrace/values';
import { openFiles } from '@millrace/store';
import { codeOf } from '../driver/run-tool.js';
import { filesIn, inDirectory, openDirectory, removeDirectory } from '../driver/temporary.js';
import { type Attack, scene } from '../scene.js';

const pay = tool({ name: 'pay', description: 'Pays.', run: () => 'Paid.' });

interface Opened {
  readonly agent: Agent;
  readonly model: ScriptedModel;
  readonly durable: Journal;
  readonly chat: (id: string) => ReturnType<ReturnType<typeof sessions>['open']>;
}

const openStore = (directory: string, model: ScriptedModel): Opened => {
  const store = openFiles(directory);
  const durable = journal(store.calls);
  const agent = createAgent({ name: 'helper', model, tools: [pay], use: [durable] });
  return {
    agent,
    model,
    durable,
    chat: (id) => sessions(agent, { memory: store.memory }).open(id),
  };
};

const chatting = (): ScriptedModel =>
  scriptedModel(...Array.from({ length: 6 }, () => [text('Hi.')]));

/** A store with one conversation and its call. */
const open = async (): Promise<string> => {
  const directory = await openDirectory();
  const model = scriptedModel([toolCall('pay', {}, 'p')], [text('Done.')]);
  await openStore(directory, model).chat('ann').call('Hi.');
  return directory;
};

type Stored = Readonly<Record<string, unknown>>;
/** What a row becomes, as a record or as JSON of its own. */
type Change = (row: Stored) => Stored | string;

const inText =
  (change: (json: string) => string): Change =>
  (row) =>
    typeof row['text'] === 'string' ? { ...row, text: change(row['text']) } : row;

const deep = '['.repeat(50_000) + ']'.repeat(50_000);

/** The checksum fits: whoever can write a file can write its checksums. */
const changes: Readonly<Record<string, Change>> = {
  'the user speaks as the system': inText((json) =>
    json.replaceAll('"role":"user"', '"role":"system"'),
  ),
  'a prototype in a text': inText((json) => json.replace('{', '{"__proto__":{"polluted":1},')),
  'a prototype in a row': (row) => JSON.stringify(row).replace('{', '{"__proto__":{"polluted":1},'),
  'content that is a number': inText((json) => json.replace(/"content":\[.*\]/, '"content":5')),
  'a block that is null': inText((json) => json.replace(/"content":\[/, '"content":[null,')),
  'a result without its tool call': inText((json) =>
    json.replaceAll('"tool_call"', '"tool_callx"'),
  ),
  '50,000 levels': inText((json) => json.replace(/"content":\[/, `"x":${deep},"content":[`)),
  'a text that is not JSON': inText(() => 'x'),
  'a text that is null': (row) => ({ ...row, text: null }),
  'a row that is a number': () => '5',
  'a huge position': (row) => ({ ...row, seq: 1e300, position: 1e300 }),
  'a negative position': (row) => ({ ...row, seq: -1, position: -1 }),
  'rows with one id': (row) => ({ ...row, id: 'same', position: 1 }),
  'a kind called __proto__': (row) => ({ ...row, kind: '__proto__' }),
  'a name called __proto__': (row) => ({ ...row, name: '__proto__' }),
  'another version': inText((json) => json.replace('"version":1', '"version":99')),
  'another agent': inText((json) => json.replace('"agent":"helper"', '"agent":"other"')),
  'another session': inText((json) => json.replace('"sessionId":"ann"', '"sessionId":"eve"')),
};

/** Damage that has no checksum. */
const damages: Readonly<Record<string, (content: string) => string>> = {
  'half a file': (content) => content.slice(0, Math.floor(content.length / 2)),
  'an empty file': () => '',
  null: () => 'null\n',
  'an array': () => '[]\n',
  bytes: () => '\u0000\ufffd\n\u0000',
  '200,000 levels': () => '['.repeat(200_000) + ']'.repeat(200_000) + '\n',
  'every line twice': (content) => content + content,
  'a line of 5 MB': (content) => `${content}${JSON.stringify({ x: 'y'.repeat(5e6) })}\n`,
  'huge numbers': (content) => content.replaceAll(/\d+/g, '9e999'),
};

const rewritten = (line: string, change: Change): string => {
  if (line === '') return line;
  const [, kind = '', json = ''] = /^\{"crc32":"\w+","(\w+)":(.*)\}$/s.exec(line) ?? [];
  if (kind !== 'record') return line;
  const row = parsedJson(json);
  if (!isRecord(row)) return line;
  const changed = change(row);
  const content = typeof changed === 'string' ? changed : JSON.stringify(changed);
  return `{"crc32":"${crc32(content).toString(16).padStart(8, '0')}","record":${content}}`;
};

/** Resolves to `fine`, or to the code of the error. */
const outcomeOf = (work: () => PromiseLike<unknown>): Promise<string> =>
  Promise.resolve()
    .then(work)
    .then(() => 'fine', codeOf);

/** The store is changed in one of its rooms; then the conversation is read, continued and resumed. */
const changed =
  (room: string, change: (content: string) => string): Attack<string> =>
  (original) =>
    inDirectory(async (directory) => {
      await cp(original, directory, { recursive: true });
      const files = (await filesIn(directory)).filter((file) => file.includes(`/${room}/`));
      const contents = await Promise.all(files.map((file) => readFile(file, 'utf8')));
      const after = contents.map(change);
      if (after.join() === contents.join()) return 'nothing was changed';
      await Promise.all(files.map((file, index) => writeFile(file, after[index] ?? '')));
      const { chat, durable, model } = openStore(directory, chatting());
      const session = chat('ann');
      const ids = (await readdir(join(directory, 'calls'))).filter((name) => name.startsWith('i-'));
      const outcomes = [
        await outcomeOf(() => session.saveState()),
        await outcomeOf(() => session.call('Again.')),
        await outcomeOf(() => durable.resume(session, ids[0]?.slice(2) ?? '')),
      ];
      const roles = model.requests.flatMap(({ messages }) => messages.map(({ role }) => role));
      if (roles.some((role: string) => role === 'system')) return 'the row spoke as the system';
      const untyped = outcomes.filter((outcome) => outcome.startsWith('untyped'));
      return untyped.length === 0 ? undefined : untyped.join(', ');
    });

const inRows = (change: Change) => (content: string) =>
  content
    .split('\n')
    .map((line) => rewritten(line, change))
    .join('\n');

/** Changes that are about conversations or about calls only change nothing in the other room. */
const roomsOf: Readonly<Record<string, readonly string[]>> = {
  'another version': ['calls'],
  'another agent': ['calls'],
  'another session': ['calls'],
};
const rooms = ['conversations', 'calls'];

const ids = [
  ...['../../../../escaped', '/etc/passwd', 'a/../../b', '__proto__', 'con', 'x'.repeat(16_000)],
  ...['\0', '\ud800', 'A', '.', '..', '-rf', 'i-\u202e', 'a\\..\\..\\b', '~', '%2e%2e%2f'],
];

/** The files of a session are below its store, and no other session has them. */
const named =
  (id: string): Attack<string> =>
  () =>
    inDirectory(async (outer) => {
      const directory = join(outer, 'a', 'b', 'c', 'd', 'store');
      const { chat } = openStore(directory, chatting());
      const first = await outcomeOf(() => chat(id).call('Hi.'));
      const files = await filesIn(outer);
      const outside = files.filter((file) => !file.startsWith(`${directory}/`));
      if (outside.length > 0) return `wrote ${outside.join()}`;
      if (first.startsWith('untyped')) return first;
      if (first !== 'fine')
        return files.some((file) => file.includes('conversations'))
          ? `${first}, with files`
          : undefined;
      const other = await chat(`${id.toLowerCase()}-`).saveState();
      return other.messages.length === 0 ? undefined : 'another session has its messages';
    });

export const storeScenes = [
  scene<string>({
    rule: 'S4',
    promise:
      'A store that was tampered with is refused with a typed error, and never speaks as the system',
    open,
    close: removeDirectory,
    attacks: Object.fromEntries<Attack<string>>([
      ...Object.entries(changes).flatMap(([name, change]) =>
        (roomsOf[name] ?? rooms).map(
          (room) => [`${room}: ${name}`, changed(room, inRows(change))] as const,
        ),
      ),
      ...Object.entries(damages).flatMap(([name, damage]) =>
        rooms.map((room) => [`${room}: ${name}`, changed(room, damage)] as const),
      ),
    ]),
  }),
  scene<string>({
    rule: 'X17',
    promise: 'The id of a session names no file outside of its store',
    open: () => '',
    attacks: Object.fromEntries(
      ids.map((id) => [`the id ${JSON.stringify(id.slice(0, 30))}`, named(id)]),
    ),
  }),
];
