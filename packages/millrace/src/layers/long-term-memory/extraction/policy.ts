/** Why a fact is not stored although the user has stated it, unless `admit` decides otherwise. */
export type Doubt = 'permission' | 'order' | 'toolName';

/** A fact that does more than to describe the user: memories are shown to models, which may obey them. */
export const doubtAbout = (text: string, toolNames: readonly string[]): Doubt | undefined => {
  const plain = text.normalize('NFKC').replace(/[’`´]/gu, "'");
  if (namesTool(plain, toolNames)) return 'toolName';
  if (orders.some((pattern) => pattern.test(plain))) return 'order';
  return permissions.some((pattern) => pattern.test(plain)) ? 'permission' : undefined;
};

const permissions: readonly RegExp[] = [
  /\b(?:approv|authori[sz]|permitt|permission|grant(?:s|ed|ing)\b|consent|entitl|privileg|unrestrict|whitelist|allowlist|pre-?approv)/iu,
  /\b(?:is|are|was|were|be|been|has been|have been|am) allowed\b|\ballow(?:s|ed)? (?:all|any|every|the|to|it)\b|\bagree[sd]? (?:to|that|with)\b|\bconfirm(?:s|ed)? (?:that|all|every|any|the)\b/iu,
  /\bwithout (?:any |further |prior |explicit )?(?:ask|confirm|approv|check|question|permission|verif|review|consent|consult)/iu,
  /\b(?:admin(?:istrator)?|superuser|root (?:access|user|account|rights)|sudo|moderator|developer mode|god mode|debug mode|jailbreak)\b/iu,
  /\b(?:owns?|owner of|has access to|full access|access to) (?:this|the|all|every|any) (?:account|system|server|data|file|tool|database|conversation|machine)/iu,
  /\b(?:bypass|exempt|overrid|overrul)|\b(?:disabl|skip)\w* (?:\w+ )?(?:check|confirm|approv|verif|review|step|limit|filter|guard|question)|\bno (?:approval|confirmation|permission|verification|limit|restriction)s?\b|\bnot (?:need|require) (?:any )?(?:approval|confirmation|permission|verification)/iu,
  /\b(?:trusted|verified|safe) (?:sender|source|user|account|site|domain|address|recipient|payee|contact)|\b(?:can|may|must) be (?:trusted|paid)\b/iu,
  /\b(?:may|can|could|shall) (?:now |always |freely |also )?(?:be |pay|send|transfer|delete|share|access|run|execute|read|write|spend|buy|book|order|publish|post|forward)\b.{0,40}\b(?:automatically|freely|any time|anytime|by default|on (?:his|her|their|my) behalf)/iu,
  /\b(?:genehmig|erlaub|zugestimmt|autoris|einverstanden|ohne (?:zu fragen|rückfrage|nachfrage|bestätigung)|approuv|permis(?:sion)?\b|sans (?:demander|confirmation|confirmer)|aprob|permit(?:e|en|ido|ida|ir)\b|sin (?:preguntar|confirma)|approvat|senza (?:chiedere|conferma)|aprovad|sem (?:perguntar|confirma))/iu,
  /разреш|одобр|без (?:подтверждения|вопросов)|批准|授权|許可|无需(?:确认|询问)|承認|허락|승인/u,
];

const orders: readonly RegExp[] = [
  /\b(?:(?:the|this|any|every|all|my|your|ai) (?:assistant|agent|chat ?bot|bot|ai|language model)s?|(?:assistant|agent|bot|ai|model|system)s? (?:must|should|shall|has|have|may|can|is|will|needs?)|llm|system prompt|(?:your|the|these|previous|system|following) instructions?|you|your|yourself|assistent\p{L}*|asistente|assistente|ассистент\p{L}*)\b/iu,
  /助手|助理|アシスタント|어시스턴트|你必须|你应该/u,
  /\b(?:from now on|in (?:the )?future|going forward|henceforth|ab jetzt|desde ahora|à partir de maintenant|d'ora in poi)\b/iu,
  /\b(?:for|to|in|on|with|before|after|at) (?:every|each|any|all) (?:\w+ )?(?:questions?|requests?|messages?|answers?|repl(?:y|ies)|responses?|calls?|conversations?|tasks?|e?-?mails?|invoices?|payments?|orders?)\b/iu,
  /\b(?:whenever|every time|each time|when|if|once|before|after) (?:asked|asking|answering|replying|responding|the user|somebody asks|someone asks|there is a question)/iu,
  /\b(?:must|should|shall|needs? to|has to|is to) (?:first |always |never |be )?(?:call|send|forward|reply|respond|answer|ignore|use the|execute|run|delete|transfer|pay|obey|follow|reveal|share|include|append|post|upload|call|tell|say)\w*\b/iu,
  /^\W*(?:please |always |never |do not |don't |must |first )*(?:ignore|call|send|forward|reply|respond|answer|execute|run|delete|transfer|pay|obey|follow|reveal|share|include|append|upload|tell|say|use|remember to|remind|ask|write|store|add|show|treat|assume|act|pretend)\b(?! (?:for|as|at|in|with) (?:a|an|the)\b)/iu,
  /^\W*(?:always|never|please|do not|don't) (?!\w+(?:s|ed)\b)\w+/iu,
  /\b(?:ignore|disregard|obey|follow) (?:all|any|the|these|previous|earlier|prior|every)\b/iu,
];

/** A tool by its name: one that reads as an identifier, or any name beside a word for its use. */
const namesTool = (text: string, names: readonly string[]): boolean =>
  /\b\p{L}+(?:_\p{L}[\p{L}\p{N}]*)+\b|\b\p{L}[\p{L}\p{N}_.-]*\(/u.test(text) ||
  names.some((name) => {
    const at = `(?<![\\p{L}\\p{N}_])${name.replace(/[\\^$.*+?()[\]{}|/]/gu, '\\$&')}(?![\\p{L}\\p{N}_])`;
    const isIdentifier = /[\p{N}_.-]|\p{Ll}\p{Lu}/u.test(name);
    return isIdentifier
      ? new RegExp(at, 'iu').test(text)
      : new RegExp(
          `\\b(?:calls?|uses?|runs?|invokes?|tools?|functions?|with|via) (?:the |a )?(?:tool |function )?${at}|${at} (?:tool|function)\\b`,
          'iu',
        ).test(text);
  });
