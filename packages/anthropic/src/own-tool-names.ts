import { toolNames, type ToolNames } from '@millrace/wire';

/**
 * Maps the names of our tools as `toolNames` does, and gives one that a tool of the vendor has already another name
 * on the wire: the API takes no name twice.
 */
export const ownToolNames = (own: readonly string[], builtIn: readonly string[]): ToolNames => {
  const taken = new Set(own.filter((name) => builtIn.includes(name)));
  // A space is in no name of the wire. One more for each keeps all names apart.
  const moved = (name: string): string => (taken.has(name.trimEnd()) ? `${name} ` : name);
  const names = toolNames(own.map(moved));
  return {
    toWire: (name) => names.toWire(moved(name)),
    fromWire: (wire) => {
      const name = names.fromWire(wire);
      return taken.has(name.trimEnd()) ? name.replace(/ $/u, '') : name;
    },
  };
};
