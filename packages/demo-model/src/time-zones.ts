/** Finds the IANA time zone of a place, a country with one main zone, or a zone's own name. */
export const zoneOf = (name: string): string | undefined => {
  const key = name.toLowerCase().replaceAll('_', ' ');
  return zones.get(key) ?? abbreviations.get(name) ?? offsetZone(name);
};

const offsetZone = (name: string): string | undefined => {
  const [, sign, hours] = /^(?:UTC|GMT)([+-])(\d{1,2})$/u.exec(name) ?? [];
  if (sign === undefined || Number(hours) > 12) return undefined;
  return `Etc/GMT${sign === '+' ? '-' : '+'}${Number(hours)}`;
};

/** Tells whether a name says in which country or state a city is. */
export const isRegionName = (name: string): boolean => regions.has(name.toLowerCase());

const aliases: readonly (readonly [string, string])[] = [
  ['UTC', 'utc|gmt|greenwich'],
  [
    'America/New_York',
    'nyc|new york city|washington|washington dc|boston|miami|atlanta|philadelphia',
  ],
  [
    'America/Los_Angeles',
    'los angeles|san francisco|seattle|california|san diego|las vegas|silicon valley',
  ],
  ['America/Chicago', 'dallas|houston|austin|texas'],
  ['America/Toronto', 'ottawa|montreal'],
  ['America/Sao_Paulo', 'são paulo|rio|rio de janeiro|brasilia'],
  ['America/Argentina/Buenos_Aires', 'buenos aires|argentina'],
  ['America/Bogota', 'bogotá|colombia'],
  ['America/Lima', 'peru'],
  ['Africa/Johannesburg', 'cape town|south africa|pretoria'],
  ['Africa/Cairo', 'egypt'],
  ['Africa/Lagos', 'nigeria|abuja'],
  ['Africa/Nairobi', 'kenya'],
  ['Asia/Tokyo', 'japan|osaka|kyoto'],
  ['Asia/Seoul', 'korea|south korea'],
  ['Asia/Shanghai', 'china|beijing|shenzhen|guangzhou'],
  ['Asia/Kolkata', 'india|mumbai|delhi|new delhi|bangalore|bengaluru|chennai|kolkata|hyderabad'],
  ['Asia/Singapore', 'singapore'],
  ['Asia/Bangkok', 'thailand|hanoi'],
  ['Asia/Ho_Chi_Minh', 'vietnam|ho chi minh city'],
  ['Asia/Manila', 'philippines'],
  ['Asia/Dubai', 'abu dhabi|uae'],
  ['Asia/Jerusalem', 'tel aviv|israel'],
  ['Asia/Karachi', 'pakistan|islamabad'],
  ['Asia/Kathmandu', 'nepal|kathmandu'],
  ['Asia/Riyadh', 'saudi arabia'],
  ['Asia/Tehran', 'iran'],
  ['Europe/Amsterdam', 'amsterdam|netherlands|the netherlands|holland|rotterdam'],
  ['Europe/Athens', 'greece'],
  ['Europe/Berlin', 'germany|munich|münchen|frankfurt|hamburg|cologne|köln|stuttgart'],
  ['Europe/Brussels', 'belgium|brussels'],
  ['Europe/Copenhagen', 'denmark|copenhagen'],
  ['Europe/Dublin', 'ireland'],
  ['Europe/Helsinki', 'finland'],
  ['Europe/Istanbul', 'turkey|türkiye|ankara'],
  ['Europe/Kyiv', 'ukraine|kyiv'],
  ['Europe/Lisbon', 'portugal|porto'],
  ['Europe/London', 'uk|united kingdom|england|britain|great britain|scotland|edinburgh|wales'],
  ['Europe/Madrid', 'spain|barcelona'],
  ['Europe/Oslo', 'norway|oslo'],
  ['Europe/Paris', 'france|lyon|marseille'],
  ['Europe/Prague', 'czechia|czech republic'],
  ['Europe/Rome', 'italy|milan|naples'],
  ['Europe/Stockholm', 'sweden|stockholm'],
  ['Europe/Vienna', 'austria'],
  ['Europe/Warsaw', 'poland'],
  ['Europe/Zurich', 'switzerland|zürich|geneva|bern|basel'],
  ['Pacific/Auckland', 'new zealand|wellington'],
  ['Pacific/Honolulu', 'hawaii'],
  ['Indian/Christmas', 'christmas island'],
  ['Pacific/Easter', 'easter island'],
];

const regions = new Set(
  aliases
    .flatMap(([, names]) => names.split('|'))
    .concat('usa', 'us', 'canada', 'australia', 'brazil', 'mexico', 'ny', 'ca', 'russia'),
);

const abbreviations = new Map([
  ['LA', 'America/Los_Angeles'],
  ['NY', 'America/New_York'],
  ['EST', 'America/New_York'],
  ['ET', 'America/New_York'],
  ['PST', 'America/Los_Angeles'],
  ['PT', 'America/Los_Angeles'],
  ['CET', 'Europe/Berlin'],
  ['JST', 'Asia/Tokyo'],
]);

const cityOf = (zone: string): string => (zone.split('/').at(-1) ?? zone).replaceAll('_', ' ');

const zones = new Map<string, string>([
  ...Intl.supportedValuesOf('timeZone').flatMap((zone): [string, string][] => [
    [zone.toLowerCase().replaceAll('_', ' '), zone],
    [cityOf(zone).toLowerCase(), zone],
  ]),
  ...aliases.flatMap(([zone, names]) =>
    [zone.toLowerCase().replaceAll('_', ' '), ...names.split('|')].map((name): [string, string] => [
      name,
      zone,
    ]),
  ),
]);
