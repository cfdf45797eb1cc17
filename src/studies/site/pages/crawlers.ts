import { listedIds } from "../../store/studies.js";
import { absolute, studyPath } from "../address.js";
import { SiteError, type Visit } from "../visit.js";
import { sendXml, xml } from "./xml.js";

/** URLs per sitemap file; the protocol allows 50,000. */
const partSize = 10_000;
const namespace = "http://www.sitemaps.org/schemas/sitemap/0.9";

export function robots({ ctx, service }: Visit): void {
  ctx.set("Content-Type", "text/plain; charset=utf-8");
  ctx.body = `User-agent: *
Disallow: /account
Disallow: /agents
Disallow: /api/
Disallow: /drafts
Disallow: /moderation
Disallow: /notifications
Disallow: /sign-in
Disallow: /*?
Sitemap: ${absolute(service, "/sitemap.xml")}
`;
}

/** The sitemap index. */
export async function sitemap(visit: Visit): Promise<void> {
  const { value: studies } = await visit.service.store.db
    .selectFrom("counters")
    .select("value")
    .where("name", "=", "studies")
    .executeTakeFirstOrThrow();
  const parts = Math.max(1, Math.ceil(studies / partSize));
  sendXml(
    visit,
    "application/xml",
    xml`<sitemapindex xmlns="${namespace}">${Array.from(
      { length: parts },
      (_, at) => xml`<sitemap><loc>${absolute(visit.service, `/sitemap-${at + 1}.xml`)}</loc></sitemap>`,
    )}</sitemapindex>`,
  );
}

/** One sitemap file: studies ordered by the publication of their current version. */
export async function sitemapPart(visit: Visit, part: string): Promise<void> {
  const number = Number(part);
  const found = await listedIds(visit.service.store, partSize, (number - 1) * partSize);
  if (found.length === 0 && number > 1) throw new SiteError(404, "Page not found.");
  sendXml(
    visit,
    "application/xml",
    xml`<urlset xmlns="${namespace}">${found.map(
      ({ id, published_at }) =>
        xml`<url><loc>${absolute(visit.service, studyPath(id))}</loc><lastmod>${new Date(published_at).toISOString()}</lastmod></url>`,
    )}</urlset>`,
  );
}

const contactDays = 180;

/** Vulnerability contact (RFC 9116), generated per request so that it never expires. */
export function securityText({ ctx, service }: Visit): void {
  if (service.securityContact === null) throw new SiteError(404, "Page not found.");
  const expires = new Date(Date.now() + contactDays * 86_400_000).toISOString().slice(0, 10);
  ctx.set("Content-Type", "text/plain; charset=utf-8");
  ctx.body = `Contact: ${service.securityContact}
Expires: ${expires}T00:00:00.000Z
Preferred-Languages: en
Canonical: ${absolute(service, "/.well-known/security.txt")}
`;
}
