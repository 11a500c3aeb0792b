const accepted = /^[a-zA-Z0-9_-]+$/;
const prefix = 'id_';

/**
 * Maps the ID of a tool call to one that every vendor accepts: letters, digits, `_` and `-`. An acceptable ID stays the
 * same. In any other, the code of each other character replaces it, which is collision-free and the same in every request.
 */
export const toWireId = (id: string): string =>
  accepted.test(id) && !id.startsWith(prefix)
    ? id
    : prefix + id.replace(/[^a-zA-Z0-9-]/g, (unit) => `_${unit.charCodeAt(0).toString(16)}_`);
