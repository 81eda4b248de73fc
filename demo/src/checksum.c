#include "checksum.h"

#include "frame.h"

uint16_t checksum(const uint8_t *data, uint32_t length, uint32_t sum)
{
	uint32_t i;
	for (i = 0; i + 1 < length; i += 2)
		sum += load_be16(data + i);
	if (i < length)
		sum += (uint32_t)data[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

uint32_t checksum_pseudo_header(const uint8_t *ipv4, uint8_t protocol, uint32_t l4_length)
{
	uint32_t sum = protocol + l4_length;
	for (uint32_t i = 12; i < 20; i += 2)
		sum += load_be16(ipv4 + i);
	return sum;
}

bool checksum_finish(uint8_t *frame, uint32_t length)
{
	uint32_t l4, field;
	uint8_t protocol;

	if (length < 34)
		return false;
	if (load_be16(frame + 12) == ETHER_IPV4) {
		l4 = 14 + (frame[14] & 0x0fu) * 4;
		protocol = frame[23];
	} else if (load_be16(frame + 12) == 0x86dd) {
		l4 = 54;
		protocol = frame[20];
	} else {
		return false;
	}
	if (protocol != 6 && protocol != 17)
		return false;
	field = l4 + (protocol == 6 ? 16 : 6);
	if (field + 2 > length)
		return false;
	uint16_t sum = checksum(frame + l4, length - l4, 0);
	/* RFC 768: a computed 0 is sent as all ones, as 0 says "no checksum". */
	store_be16(frame + field, sum == 0 && protocol == 17 ? 0xffff : sum);
	return true;
}
