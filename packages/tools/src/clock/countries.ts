/** Reads the time zones of each country from `Intl`, by normalized English name. Takes about 100 ms. */
export const readCountries = (): ReadonlyMap<string, readonly string[]> => {
  const names = new Intl.DisplayNames(['en'], { type: 'region', fallback: 'none' });
  const countries = new Map<string, readonly string[]>();
  for (const region of regions()) {
    const zones = zonesOf(region);
    const spellings = [names.of(region) ?? '', ...(otherNames.get(region) ?? [])];
    for (const spelling of zones.length === 0 ? [] : spellings) {
      countries.set(normalizePlaceName(spelling.replace(/ \(.*\)| SAR China/gu, '')), zones);
    }
  }
  countries.delete('');
  return countries;
};

/** The zones to suggest for countries with many zones. */
export const principalZones: ReadonlySet<string> = new Set(
  [
    'America/New_York America/Chicago America/Denver America/Los_Angeles America/Anchorage Pacific/Honolulu',
    'America/St_Johns America/Halifax America/Toronto America/Winnipeg America/Edmonton America/Vancouver',
    'Australia/Sydney Australia/Brisbane Australia/Adelaide Australia/Darwin Australia/Perth',
    'America/Sao_Paulo America/Manaus America/Rio_Branco America/Mexico_City America/Cancun America/Tijuana',
    'Europe/Kaliningrad Europe/Moscow Asia/Yekaterinburg Asia/Novosibirsk Asia/Vladivostok Asia/Kamchatka',
    'Asia/Jakarta Asia/Makassar Asia/Jayapura',
  ].flatMap((zones) => zones.split(' ')),
);

const otherNames = new Map([
  ['US', ['USA', 'US', 'U.S.', 'U.S.A.', 'America', 'United States of America']],
  ['GB', ['UK', 'Great Britain']],
  ['AE', ['UAE']],
  ['TR', ['Turkey']],
  ['CI', ['Ivory Coast']],
  ['KR', ['Korea']],
]);

const letters = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ');

const regions = (): readonly string[] =>
  letters.flatMap((first) => letters.map((second) => first + second));

/** Older versions have an accessor `timeZones` in place of the method. */
const zonesOf = (region: string): readonly string[] => {
  const locale = new Intl.Locale('und', { region });
  const method: unknown = Reflect.get(locale, 'getTimeZones');
  const zones: unknown =
    typeof method === 'function'
      ? Reflect.apply(method, locale, [])
      : Reflect.get(locale, 'timeZones');
  return Array.isArray(zones) ? zones.map(String) : [];
};

/** Normalizes the name of a place: `São Paulo` and `sao_paulo` become equal. */
export const normalizePlaceName = (name: string): string =>
  name
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .replace(/\b(?:and|the)\b/gu, ' ')
    .replace(/\s+/gu, ' ')
    .trim();
