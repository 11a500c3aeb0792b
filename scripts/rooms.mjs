// Draws the rooms of core from their imports: an arrow for what a room needs, without those that follow from others.
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { root } from './workspaces.mjs';

const source = 'packages/core/src';
const isTest = /\.test(-d|-support|-data)?\.ts$/;

const roomOf = (file) => file.split('/')[0].replace(/\.ts$/, '');

/** The rooms, and the files between them, each with those that it imports. */
function roomImports() {
  const rooms = new Map();
  const files = readdirSync(join(root, source), { recursive: true })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => /\.ts$/.test(file) && !isTest.test(file))
    .filter((file) => !/^(index\.ts|testing\/)/.test(file));
  for (const file of files) {
    const room = roomOf(file);
    const needs = rooms.get(room) ?? new Set();
    rooms.set(room, needs);
    for (const [, specifier] of readFileSync(join(root, source, file), 'utf8').matchAll(
      / from '(\.[^']+)\.js'/g,
    )) {
      const needed = roomOf(posix.join(posix.dirname(file), specifier));
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

/** The picture, in Mermaid. */
export function drawRooms() {
  const rooms = roomImports();
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
