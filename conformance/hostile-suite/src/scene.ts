/** The outcome of one attack. */
export interface Row {
  readonly promise: string;
  readonly attack: string;
  /** What the attacker got. Undefined if the promise held. */
  readonly broke: string | undefined;
}

/** A promise, and the attacks on it that share a world: a server, a directory, an agent. */
export interface Scene {
  /** The rule of docs/rules.md that the promise is part of, if there is one. */
  readonly rule: string | undefined;
  readonly promise: string;
  readonly attacks: readonly string[];
  /** Plays the attacks one after another. */
  readonly play: () => Promise<readonly Row[]>;
}

/** Resolves to what the attacker got, or to undefined if the promise held. */
export type Attack<World> = (world: World) => Promise<string | undefined>;

export interface SceneOptions<World> {
  readonly rule?: string;
  readonly promise: string;
  readonly open: () => Promise<World> | World;
  readonly close?: (world: World) => unknown;
  readonly attacks: Readonly<Record<string, Attack<World>>>;
}

/** An attack that takes longer has made something hang. */
const patienceMs = 60_000;

/** Joins attacks on one promise. */
export const scene = <World>(options: SceneOptions<World>): Scene => ({
  rule: options.rule,
  promise: options.promise,
  attacks: Object.keys(options.attacks),
  play: () => playIn(options),
});

const playIn = async <World>(options: SceneOptions<World>): Promise<readonly Row[]> => {
  const { promise, open, close, attacks } = options;
  const world = await open();
  const rows: Row[] = [];
  try {
    for (const [attack, play] of Object.entries(attacks)) {
      rows.push({ promise, attack, broke: await outcomeOf(play, world) });
    }
  } finally {
    await close?.(world);
  }
  return rows;
};

/** An attack that throws has not been played: that is not a promise that held. */
const outcomeOf = async <World>(play: Attack<World>, world: World): Promise<string | undefined> => {
  const polluted = polluting();
  try {
    return (await inTime(play(world))) ?? polluted();
  } catch (error) {
    return `the attack failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  }
};

const inTime = async <T>(work: Promise<T>): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no outcome after ${patienceMs} ms`)), patienceMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
};

/** Whatever an attack is about: nothing from outside may reach the prototype of all objects. */
const polluting = () => {
  const before = Reflect.ownKeys(Object.prototype);
  return (): string | undefined => {
    const added = Reflect.ownKeys(Object.prototype).filter((key) => !before.includes(key));
    added.forEach((key) => Reflect.deleteProperty(Object.prototype, key));
    return added.length === 0 ? undefined : `Object.prototype got ${added.map(String).join(', ')}`;
  };
};
