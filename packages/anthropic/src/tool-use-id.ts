const accepted = /^[a-zA-Z0-9_-]+$/;
const prefix = 'b64_';

/**
 * What a tool use is called on the wire, which takes only letters, digits, `_` and `-`. An id that it takes stays as
 * it is. Any other is written in base64, so no two ids become one, and an id is called the same in every request.
 */
export const toWireId = (id: string): string =>
  accepted.test(id) && !id.startsWith(prefix)
    ? id
    : prefix + Buffer.from(id, 'utf16le').toString('base64url');
