/** Whether a version is at least the one that a range such as `>=20.19` names. */
export function isAtLeast(version, range) {
  const [actual, wanted] = [version, range].map((text) => text.match(/\d+/g).map(Number));
  const at = wanted.findIndex((number, index) => number !== actual[index]);
  return at === -1 || actual[at] > wanted[at];
}
