import { describe, expect, it } from '@jest/globals';
import { normalizePlaceName, principalZones } from './countries.js';
import { canonicalZone } from './time-zone.js';
import { ambiguousNames, timeZoneAliases } from './time-zone-aliases.js';

describe('timeZoneAliases', () => {
  it('lead to zones that exist', () => {
    const zones = [
      ...timeZoneAliases.values(),
      ...principalZones,
      ...ambiguousNames.values(),
    ].flat();
    expect(zones.filter((zone) => canonicalZone(zone) === undefined)).toEqual([]);
  });

  it('are written in the form in which they are looked up', () => {
    const names = [...timeZoneAliases.keys(), ...ambiguousNames.keys()];
    expect(names.filter((name) => normalizePlaceName(name) !== name)).toEqual([]);
  });

  it('are not also said to be ambiguous', () => {
    expect([...ambiguousNames.keys()].filter((name) => timeZoneAliases.has(name))).toEqual([]);
  });
});
