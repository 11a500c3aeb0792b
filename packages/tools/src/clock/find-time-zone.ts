import { nearMatches } from 'millrace/values';
import { normalizePlaceName, principalZones, readCountries } from './countries.js';
import { canonicalZone, ianaZone, offsetZone, type TimeZone } from './time-zone.js';
import { ambiguousNames, timeZoneAliases } from './time-zone-aliases.js';

/** Finds the zone of a city, country, abbreviation, IANA name or offset. Throws for an unknown or ambiguous place. */
export type FindTimeZone = (place: string, now: number) => TimeZone;

/** Creates a `FindTimeZone`, which reads data from `Intl` on first use. */
export const createFindTimeZone = (): FindTimeZone => {
  let atlas: Atlas | undefined;
  return (place, now) => {
    const offset = offsetZone(place);
    if (offset !== undefined) return offset;
    atlas ??= readAtlas();
    const found = place.includes('/') ? zoneByPath(atlas, place, now) : undefined;
    return (
      found ??
      lookUp(atlas, place, now) ??
      withQualifier(atlas, place, now) ??
      unknown(atlas, place)
    );
  };
};

interface Atlas {
  /** Zones by normalized city name. */
  readonly cities: ReadonlyMap<string, string>;
  /** Zones by normalized country name. */
  readonly countries: () => ReadonlyMap<string, readonly string[]>;
}

const readAtlas = (): Atlas => {
  let countries: ReadonlyMap<string, readonly string[]> | undefined;
  const zones = Intl.supportedValuesOf('timeZone');
  return {
    cities: new Map(zones.map((zone) => [normalizePlaceName(zone.split('/').at(-1) ?? ''), zone])),
    countries: () => (countries ??= readCountries()),
  };
};

/** Finds `Europe/Berlin` itself, and `Europe/Munich` by its last part. */
const zoneByPath = (atlas: Atlas, path: string, now: number): TimeZone | undefined =>
  ianaZone(path.trim().replaceAll(' ', '_')) ?? lookUp(atlas, path.split('/').at(-1) ?? '', now);

const lookUp = (atlas: Atlas, place: string, now: number): TimeZone | undefined => {
  const name = normalizePlaceName(place);
  const candidates = ambiguousNames.get(name);
  if (candidates !== undefined) throw ambiguous(place, candidates);
  const city = name.replace(/ city$/u, '');
  const zone =
    timeZoneAliases.get(name) ??
    atlas.cities.get(name) ??
    timeZoneAliases.get(city) ??
    atlas.cities.get(city) ??
    zoneOfCountry(atlas, place, now) ??
    place.trim();
  return ianaZone(zone);
};

/** The zone of a country, if all its zones have the same time now. */
const zoneOfCountry = (atlas: Atlas, place: string, now: number): string | undefined => {
  const zones = atlas.countries().get(normalizePlaceName(place)) ?? [];
  if (new Set(zones.map((zone) => timeIn(zone, now))).size < 2) return zones[0];
  const principal = zones.filter((zone) => principalZones.has(zone));
  throw ambiguous(place, principal.length > 0 ? principal : zones);
};

const timeIn = (timeZone: string, now: number): string =>
  new Intl.DateTimeFormat('en', { timeZone, dateStyle: 'short', timeStyle: 'short' }).format(now);

/** Finds `Munich, Germany`. The country must have the zone of the city, so `Paris, Texas` is not Paris. */
const withQualifier = (atlas: Atlas, place: string, now: number): TimeZone | undefined => {
  const [city = '', ...rest] = place.split(',');
  const country = normalizePlaceName(rest.at(-1) ?? '');
  const found = rest.length === 0 ? undefined : lookUp(atlas, city, now);
  if (found === undefined) return undefined;
  const zones = [...(atlas.countries().get(country) ?? []), timeZoneAliases.get(country)];
  if (zones.some((zone) => zone !== undefined && canonicalZone(zone) === found.zone)) return found;
  throw new Error(
    `'${city.trim()}' is in the time zone ${found.name}, but it may not be the one in '${rest.join(',').trim()}'. Give only the city, or an IANA time zone.`,
  );
};

const ambiguous = (place: string, zones: readonly string[]): Error =>
  new Error(
    `'${place.trim()}' is in several time zones. Name a city or one of: ${zones.slice(0, 8).join(', ')}.`,
  );

const unknown = (atlas: Atlas, place: string): never => {
  const names = [...atlas.cities.keys(), ...timeZoneAliases.keys(), ...atlas.countries().keys()];
  const near = nearMatches(
    normalizePlaceName(place),
    names.filter((name) => name.length > 3),
  ).map(capitalize);
  const hint = near.length > 0 ? ` Did you mean ${near.join(' or ')}?` : '';
  throw new Error(
    `No time zone is known for '${place.trim().slice(0, 80)}'.${hint} Give a large city nearby, an IANA time zone such as Europe/Berlin, or an offset such as UTC+2.`,
  );
};

const capitalize = (name: string): string =>
  name.replace(/(?<=^| )\p{L}/gu, (letter) => letter.toUpperCase());
