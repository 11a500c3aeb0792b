import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const tooOld = 15 * 60_000;

/**
 * Does the work while no other process holds the same lock file, which contains its owner's process
 * id; calls `onWait` once when it must wait. A lock is stale when its owner is gone or, because ids
 * are used again, after 15 minutes.
 */
export async function oneAtATime(lock, work, onWait) {
  for (let waiting = false; !take(lock); waiting = true) {
    const owner = ownerOf(lock);
    if (isStale(lock, owner)) {
      remove(lock, owner);
    } else {
      if (!waiting) onWait();
      await setTimeout(200);
    }
  }
  try {
    return await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

function take(lock) {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

// A lock may vanish between any two looks at it: its owner is then 0, which is never stale.
function ownerOf(lock) {
  try {
    return Number(readFileSync(lock, 'utf8'));
  } catch {
    return 0;
  }
}

const ageOf = (lock) =>
  Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Infinity);

// Our own id in a lock that we do not hold was another process's, as happens in containers.
const isStale = (lock, owner) => owner === process.pid || !isAlive(owner) || ageOf(lock) > tooOld;

function isAlive(owner) {
  try {
    process.kill(owner, 0);
    return true;
  } catch (error) {
    return error.code !== 'ESRCH';
  }
}

// Two processes may find the same stale lock: the second must not remove what the first took since.
function remove(lock, owner) {
  const removal = `${lock}.${owner}`;
  if (!take(removal)) return;
  if (ownerOf(lock) === owner) rmSync(lock);
  rmSync(removal);
}
