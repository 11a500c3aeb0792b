// What a reader of the kernel must understand: the files that everyone reads, what they can see, and the way of a call.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import ts from 'typescript';
import { root } from '../workspaces.mjs';
import { membersAndUsers } from './members.mjs';

/** The files of the spine, in reading order. */
export const spine = [
  'agent.ts',
  'call/create-call.ts',
  'call/run-call.ts',
  'call/answer.ts',
  'loop.ts',
  'run.ts',
  'seams/layer.ts',
  'seams/through.ts',
  'seams/steps.ts',
  'phases/reasoning.ts',
  'phases/ask.ts',
  'phases/acting.ts',
  'phases/tool-call.ts',
];

const contexts = ['Context'];

/** A call before its loop, and as its phases see it. */
const calls = ['Call', 'LoopCall'];

/** Each member of the contexts and of a call, with the rooms that read it. */
export const members = () => membersAndUsers([...contexts, ...calls]);

export function memberCounts(all = members()) {
  const seen = new Map();
  const ofCall = new Map();
  for (const { name, rooms } of all) {
    const [type, member] = name.split('.');
    const group = calls.includes(type) ? ofCall : seen;
    group.set(member, new Set([...(group.get(member) ?? []), ...rooms]));
  }
  const types = new Set(all.map(({ name }) => name.split('.')[0]));
  return {
    'contexts: types': contexts.filter((type) => types.has(type)).length,
    'contexts: members': seen.size,
    'contexts: members that one room reads': [...seen.values()].filter(({ size }) => size < 2)
      .length,
    'call: members': ofCall.size,
    'call: members that one room reads': [...ofCall.values()].filter(({ size }) => size < 2).length,
  };
}

/** The keys that the author of a layer meets, those inside others included. */
export function keysOfLayer(modules) {
  const layer = modules
    .flatMap(({ statements }) => [...statements])
    .find((each) => ts.isInterfaceDeclaration(each) && each.name.text === 'Layer');
  const keys = (list) =>
    list.reduce(
      (sum, { type }) => sum + 1 + (type && ts.isTypeLiteralNode(type) ? keys(type.members) : 0),
      0,
    );
  return keys(layer.members);
}

const namesOf = (statement) =>
  (statement.declarationList?.declarations ?? [statement])
    .map(({ name }) => name?.text)
    .filter((name) => name !== undefined);

const isExported = ({ modifiers }) =>
  modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true;

/** Names that one file of the kernel exports, and another one declares for something else. */
export function ambiguousNames(modules) {
  const declared = new Map();
  for (const { fileName, statements } of modules) {
    for (const statement of statements) {
      for (const name of namesOf(statement)) {
        const each = declared.get(name) ?? { files: new Set(), exported: false };
        each.files.add(fileName);
        each.exported ||= isExported(statement);
        declared.set(name, each);
      }
    }
  }
  return [...declared]
    .filter(([, { files, exported }]) => exported && files.size > 1)
    .map(([name]) => name);
}

const longest = 60;

/** Functions of more than 60 lines. */
export function longFunctions(modules) {
  const found = [];
  for (const module of modules) {
    const lineAt = (at) => module.getLineAndCharacterOfPosition(at).line;
    const visit = (node) => {
      if (ts.isFunctionLike(node) && node.body !== undefined) {
        const lines = lineAt(node.end) - lineAt(node.getStart(module)) + 1;
        if (lines > longest)
          found.push(`${module.fileName}:${lineAt(node.getStart(module)) + 1} ${lines}`);
      }
      ts.forEachChild(node, visit);
    };
    visit(module);
  }
  return found;
}

/** The named functions that a call enters on its way to the socket. A file that follows another one, though it was there before, is a return. */
export function tripCounts() {
  const trip = JSON.parse(
    execFileSync(process.execPath, [join(root, 'scripts/house/trip.mjs')], { maxBuffer: 1e8 }),
  ).filter(([, name]) => name !== '');
  const files = trip.map(([file]) => file);
  const visits = files.filter((file, index) => file !== files[index - 1]);
  return {
    'trip to the socket: named functions': new Set(trip.map((each) => each.join(' '))).size,
    'trip to the socket: returns to a file': visits.length - new Set(visits).size,
    'trip to the socket: calls': trip.length,
    'trip to the socket: calls into flow': files.filter((file) => file.startsWith('millrace/flow/'))
      .length,
  };
}
