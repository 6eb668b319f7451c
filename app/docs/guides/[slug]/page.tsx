import type { Metadata } from 'next'
import { notFound } from 'next/navigation'
import { GUIDES, type GuideName, isGuide, readGuide } from '#lib/api/reference/guides.ts'
import { startedService } from '../../started-service.ts'
import { Blocks } from '../blocks.tsx'

async function findName(params: PageProps<'/docs/guides/[slug]'>['params']): Promise<GuideName> {
  const { slug } = await params
  return isGuide(slug) ? slug : notFound()
}

export async function generateMetadata({ params }: PageProps<'/docs/guides/[slug]'>): Promise<Metadata> {
  return { title: `${GUIDES[await findName(params)]} · API reference` }
}

/** A guide: a file of `docs`. */
export default async function GuidePage({ params }: PageProps<'/docs/guides/[slug]'>) {
  await startedService()
  return <Blocks tokens={await readGuide(await findName(params))} />
}
