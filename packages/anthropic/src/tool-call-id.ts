const accepted = /^[a-zA-Z0-9_-]+$/;
const prefix = 'b64_';

/**
 * Maps the ID of a tool call to one that the API accepts: letters, digits, `_` and `-`. An acceptable ID stays the
 * same. Any other is encoded in base64, which is collision-free and the same in every request.
 */
export const toWireId = (id: string): string =>
  accepted.test(id) && !id.startsWith(prefix)
    ? id
    : prefix + Buffer.from(id, 'utf16le').toString('base64url');
