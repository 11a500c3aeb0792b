// A picture of the rooms of core, by their imports.
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { root } from './workspaces.mjs';

const source = 'packages/millrace/src';
const isTest = /\.test(-d|-support|-data)?\.ts$/;

const roomOf = (file) => file.split('/')[0].replace(/\.ts$/, '');

/** The rooms, and the files between them, each with those that it imports, types included. */
function roomImports() {
  const rooms = new Map();
  const files = readdirSync(join(root, source), { recursive: true })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => /\.ts$/.test(file) && !isTest.test(file))
    .filter((file) => !file.startsWith('testing/'));
  for (const file of files) {
    const room = roomOf(file);
    const needs = rooms.get(room) ?? new Set();
    rooms.set(room, needs);
    const text = readFileSync(join(root, source, file), 'utf8');
    for (const [, specifier] of text.matchAll(/ from '(\.[^']+)\.js'/g)) {
      const needed = roomOf(`${posix.join(posix.dirname(file), specifier)}.ts`);
      if (needed !== room) needs.add(needed);
    }
  }
  return rooms;
}

const reach = (rooms, room, found = new Set()) => {
  for (const next of rooms.get(room) ?? []) {
    if (found.has(next)) continue;
    found.add(next);
    reach(rooms, next, found);
  }
  return found;
};

/** The picture, in Mermaid: an arrow for what a room needs, without those that follow from others. */
export function drawRooms() {
  const rooms = roomImports();
  rooms.delete('index');
  const arrows = [...rooms].flatMap(([room, needs]) =>
    [...needs]
      .filter(
        (need) => ![...needs].some((other) => other !== need && reach(rooms, other).has(need)),
      )
      .map((need) => `  ${nodeOf(room)} --> ${nodeOf(need)}`),
  );
  return ['```mermaid', 'graph TD', ...arrows.sort(), '```'].join('\n');
}

/** Mermaid has words of its own, such as `call` and `end`. */
const nodeOf = (room) => `room-${room}[${room}]`;
